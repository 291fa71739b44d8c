// device.hpp -- arrays in GPU memory and streams of work on them, without CUDA headers.
#pragma once

#include <cstddef>
#include <memory>
#include <ranges>
#include <span>
#include <type_traits>
#include <vector>

#include "capstan/detail/export.hpp"
#include "capstan/error.hpp"

namespace capstan {

namespace gpu {
class Stream;
class Memory;
}  // namespace gpu

/// Number of GPUs that this process sees, or of simulated ones (`--gpu-stand-ins`); they are numbered from 0.
///
/// Must not be called before Cluster::join: it initializes CUDA, join forks the process that continues, and
/// GPUs do not work in a process forked after CUDA was initialized.
CAPSTAN_API int device_count() noexcept;

/// Work that a GPU executes in order, asynchronously to the calling thread. Used by one thread at a time.
/// Throws Error: unimplemented if there is no GPU, out_of_range, internal.
class CAPSTAN_API DeviceStream {
 public:
  explicit DeviceStream(int device);
  ~DeviceStream();
  DeviceStream(DeviceStream&&) noexcept;
  DeviceStream& operator=(DeviceStream&&) noexcept;

  int device() const noexcept;
  /// Blocks until all enqueued work is done. Throws Error(internal) if any of it failed.
  void wait() const;
  /// A cudaStream_t, for user kernels; null for a simulated GPU.
  void* cuda_stream() const noexcept;
  /// Internal: for the layers below, not for programs.
  const gpu::Stream& implementation() const noexcept { return *implementation_; }

 private:
  std::unique_ptr<gpu::Stream> implementation_;
};

/// A non-owning view of elements in GPU memory.
template <class T>
class DeviceSpan {
 public:
  DeviceSpan() = default;
  DeviceSpan(T* data, std::size_t size) : data_(data), size_(size) {}
  template <class U>
  requires(std::is_const_v<T>&& std::is_same_v<U, std::remove_const_t<T>>)
      // NOLINTNEXTLINE(google-explicit-constructor): as std::span<const T> converts from std::span<T>
      DeviceSpan(const DeviceSpan<U>& other)
      : data_(other.data()), size_(other.size()) {}

  /// A device pointer: host code must not dereference it.
  T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  /// Returns elements [first, first + count). Throws Error(out_of_range) unless they are within the span.
  DeviceSpan subspan(std::size_t first, std::size_t count) const {
    if (first > size_ || count > size_ - first) {
      throw Error(Code::out_of_range, "DeviceSpan::subspan: found " + std::to_string(count) +
                                          " elements from " + std::to_string(first) +
                                          ", expected a part of " + std::to_string(size_) + " elements");
    }
    return {data_ + first, count};
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

namespace detail {

/// Owns bytes of GPU memory.
class CAPSTAN_API DeviceBytes {
 public:
  DeviceBytes(int device, std::size_t bytes);
  ~DeviceBytes();
  DeviceBytes(DeviceBytes&&) noexcept;
  DeviceBytes& operator=(DeviceBytes&&) noexcept;
  std::byte* data() const noexcept;

 private:
  std::unique_ptr<gpu::Memory> memory_;
};

CAPSTAN_API void copy_bytes(const DeviceStream& stream, void* to, const void* from, std::size_t bytes);
CAPSTAN_API void require_same_size(std::size_t to, std::size_t from);

}  // namespace detail

/// Owns elements of type T in GPU memory. The destructor waits for the GPU.
template <class T>
class DeviceArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// Elements are uninitialized. Throws Error: resource_exhausted naming the device and its free memory,
  /// after which the device remains usable; out_of_range.
  DeviceArray(int device, std::size_t size)
      : bytes_(device, size * sizeof(T)), size_(size), device_(device) {}

  T* data() const noexcept { return reinterpret_cast<T*>(bytes_.data()); }
  std::size_t size() const noexcept { return size_; }
  int device() const noexcept { return device_; }
  DeviceSpan<T> span() const noexcept { return {data(), size_}; }

 private:
  detail::DeviceBytes bytes_;
  std::size_t size_;
  int device_;
};

/// Copies between the host and the stream's GPU, in stream order; the host memory must live until the copy is
/// done. Throws Error(invalid_argument) if the sizes differ.
template <class T>
void copy(const DeviceStream& stream, DeviceSpan<T> to, std::span<const std::type_identity_t<T>> from) {
  detail::require_same_size(to.size(), from.size());
  detail::copy_bytes(stream, to.data(), from.data(), from.size_bytes());
}
template <class T>
void copy(const DeviceStream& stream, std::span<T> to, DeviceSpan<const std::type_identity_t<T>> from) {
  detail::require_same_size(to.size(), from.size());
  detail::copy_bytes(stream, to.data(), from.data(), to.size_bytes());
}

/// As above, and waits for the copy.
template <class T>
std::vector<std::remove_const_t<T>> to_host(const DeviceStream& stream, DeviceSpan<T> from) {
  std::vector<std::remove_const_t<T>> elements(from.size());
  detail::copy_bytes(stream, elements.data(), from.data(), elements.size() * sizeof(T));
  stream.wait();
  return elements;
}
template <std::ranges::contiguous_range R>
auto to_device(const DeviceStream& stream, const R& from) {
  const std::span elements(from);
  using T = std::remove_const_t<typename decltype(elements)::element_type>;
  DeviceArray<T> array(stream.device(), elements.size());
  detail::copy_bytes(stream, array.data(), elements.data(), elements.size_bytes());
  stream.wait();
  return array;
}

}  // namespace capstan
