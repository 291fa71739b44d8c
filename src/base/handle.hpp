// handle.hpp -- RAII owner of a C handle (UCX, HDF5, MPI, CUDA, NCCL).
#pragma once

#include <utility>

namespace capstan {

/// Move-only and as small as the raw handle. `Traits` supplies three things:
///   using type = ...;                      the C type
///   static type none() noexcept;           the value that means "no handle"
///   static void free(type h) noexcept;     logs a failure, never throws
template <class Traits>
class Handle {
 public:
  using type = typename Traits::type;

  Handle() noexcept = default;
  explicit Handle(type raw) noexcept : raw_(raw) {}
  Handle(Handle&& other) noexcept : raw_(other.release()) {}
  Handle& operator=(Handle&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Handle() { reset(); }

  type get() const noexcept { return raw_; }
  explicit operator bool() const noexcept { return raw_ != Traits::none(); }

  type release() noexcept { return std::exchange(raw_, Traits::none()); }
  void reset(type raw = Traits::none()) noexcept {
    if (*this) Traits::free(raw_);
    raw_ = raw;
  }

  /// For C functions that return the new handle through a pointer.
  type* out() noexcept {
    reset();
    return &raw_;
  }

 private:
  type raw_ = Traits::none();
};

}  // namespace capstan
