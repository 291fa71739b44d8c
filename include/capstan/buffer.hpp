// buffer.hpp -- Buffer: the values that a read returns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/detail/export.hpp"
#include "capstan/serialize.hpp"

namespace capstan {
namespace detail {

/// Returns uninitialized memory of `bytes`, aligned to 64 bytes; null for 0 bytes. Buffers of 64 KiB to
/// 256 MiB use memory of destroyed ones, of which the process keeps up to 256 MiB. Thread-safe. Throws
/// std::bad_alloc.
CAPSTAN_API void* allocate_buffer(std::size_t bytes);
/// Frees the memory, or keeps it for later buffers. Thread-safe.
CAPSTAN_API void free_buffer(void* memory, std::size_t bytes) noexcept;

}  // namespace detail

/// The values that Variable::pull and lookup return: an array of fixed size, which converts to std::span, and
/// by a copy to std::vector. A read fills all of it, so its memory is not zeroed first. A Buffer of 64 KiB to
/// 256 MiB takes the memory of a destroyed one, because the kernel provides new pages more slowly than a read
/// fills them.
template <class T>
class Buffer {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;

  Buffer() = default;
  /// The values are uninitialized.
  explicit Buffer(std::size_t size)
      : values_(static_cast<T*>(detail::allocate_buffer(bytes_of(size)))), size_(size) {}
  explicit Buffer(std::span<const T> values) : Buffer(values.size()) {
    std::copy(values.begin(), values.end(), data());
  }
  Buffer(const Buffer& other) : Buffer(std::span<const T>(other)) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() { detail::free_buffer(values_, size_ * sizeof(T)); }
  void swap(Buffer& other) noexcept {
    std::swap(values_, other.values_);
    std::swap(size_, other.size_);
  }

  T* data() noexcept { return values_; }
  const T* data() const noexcept { return values_; }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T& operator[](std::size_t i) noexcept { return values_[i]; }
  const T& operator[](std::size_t i) const noexcept { return values_[i]; }
  /// Throws std::out_of_range.
  const T& at(std::size_t i) const {
    if (i >= size_) throw std::out_of_range("Buffer::at");
    return values_[i];
  }
  T& front() noexcept { return *begin(); }
  const T& front() const noexcept { return *begin(); }
  T& back() noexcept { return end()[-1]; }
  const T& back() const noexcept { return end()[-1]; }
  iterator begin() noexcept { return data(); }
  iterator end() noexcept { return data() + size_; }
  const_iterator begin() const noexcept { return data(); }
  const_iterator end() const noexcept { return data() + size_; }

  /// Copies the values.
  operator std::vector<T>() const { return {begin(), end()}; }  // NOLINT(google-explicit-constructor)

  friend bool operator==(const Buffer& a, const Buffer& b) { return a == std::span<const T>(b); }
  friend bool operator==(const Buffer& a, std::span<const T> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  static std::size_t bytes_of(std::size_t size) {
    if (size > std::numeric_limits<std::size_t>::max() / sizeof(T)) throw std::bad_alloc();
    return size * sizeof(T);
  }

  T* values_ = nullptr;
  std::size_t size_ = 0;
};

/// A buffer is serialized like a std::vector.
template <detail::Plain T>
requires(!std::is_same_v<T, bool>) struct Serializer<Buffer<T>> {
  static void write(Writer& out, const Buffer<T>& buffer) {
    capstan::write(out, std::uint64_t{buffer.size()});
    out.raw(buffer.data(), buffer.size() * sizeof(T));
  }
  static Buffer<T> read(Reader& in) {
    const auto size = capstan::read<std::uint64_t>(in);
    if (size > in.left() / sizeof(T)) in.require(in.left() + 1);
    Buffer<T> buffer(size);
    in.raw(buffer.data(), size * sizeof(T));
    return buffer;
  }
};

}  // namespace capstan
