// aligned.hpp -- a resizable float buffer aligned to a cache line.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>

namespace capstan::kge {

class AlignedFloats {
 public:
  /// Discards the contents. Allocates only if `size` exceeds every earlier size. Throws std::bad_alloc.
  void resize(std::size_t size) {
    if (size > capacity_) {
      data_.reset();
      capacity_ = 0;
      data_.reset(allocate(size));
      capacity_ = size;
    }
    size_ = size;
  }

  float* data() noexcept { return data_.get(); }
  const float* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }
  std::span<float> span() noexcept { return {data_.get(), size_}; }
  std::span<const float> span() const noexcept { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(float* data) const noexcept { std::free(data); }
  };

  /// Requests huge pages for large buffers. Throws std::bad_alloc.
  static float* allocate(std::size_t size);

  std::unique_ptr<float, Free> data_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
};

}  // namespace capstan::kge
