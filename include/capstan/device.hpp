// device.hpp -- arrays in the memory of a GPU and the work that it does on them, without CUDA's headers.
#pragma once

#include <cstddef>
#include <memory>
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

/// GPUs that this process sees, or their stand-ins (`--gpu-stand-ins`). Their numbers are 0, 1, ...
///
/// Not before Cluster::join: this initialises CUDA, join forks the process that goes on, and no GPU works in
/// a process that was forked after CUDA was initialised.
CAPSTAN_API int device_count() noexcept;

/// Work that a GPU does one piece after another, while the calling thread goes on. Used by one thread at a
/// time. Throws Error: unimplemented where there is no GPU, out_of_range, internal.
class CAPSTAN_API DeviceStream {
 public:
  explicit DeviceStream(int device);
  ~DeviceStream();
  DeviceStream(DeviceStream&&) noexcept;
  DeviceStream& operator=(DeviceStream&&) noexcept;

  int device() const noexcept;
  /// Until all that has been given to it is done. Throws Error(internal) when any of it failed.
  void wait() const;
  /// A cudaStream_t, for kernels of your own; null of a stand-in.
  void* cuda_stream() const noexcept;
  /// For the layers below; not for programs.
  const gpu::Stream& implementation() const noexcept { return *implementation_; }

 private:
  std::unique_ptr<gpu::Stream> implementation_;
};

/// Somebody's elements in a GPU's memory.
template <class T>
class DeviceSpan {
 public:
  DeviceSpan() = default;
  DeviceSpan(T* data, std::size_t size) : data_(data), size_(size) {}
  template <class U>
  requires(std::is_const_v<T>&& std::is_same_v<U, std::remove_const_t<T>>)
      // NOLINTNEXTLINE(google-explicit-constructor): as std::span<const T> is made of a std::span<T>
      DeviceSpan(const DeviceSpan<U>& other)
      : data_(other.data()), size_(other.size()) {}

  /// Not for this thread to read or write.
  T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  /// Throws Error(out_of_range).
  DeviceSpan subspan(std::size_t first, std::size_t count) const {
    if (first > size_ || count > size_ - first) {
      throw Error(Code::out_of_range, "a part that is not within a DeviceSpan");
    }
    return {data_ + first, count};
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

namespace detail {

/// Bytes in a GPU's memory.
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

/// Elements of T in a GPU's memory. Waits for the GPU when it goes.
template <class T>
class DeviceArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  /// Not initialised. Throws Error: resource_exhausted that names the device and what it has left, and goes
  /// on working; out_of_range.
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

/// In the stream's order, between the host and the stream's GPU; the host's memory stays until it is done.
/// Throws Error: invalid_argument when the sizes differ.
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

/// The same, and waits.
template <class T>
std::vector<std::remove_const_t<T>> to_host(const DeviceStream& stream, DeviceSpan<T> from) {
  std::vector<std::remove_const_t<T>> here(from.size());
  detail::copy_bytes(stream, here.data(), from.data(), here.size() * sizeof(T));
  stream.wait();
  return here;
}
template <class T>
DeviceArray<T> to_device(const DeviceStream& stream, const std::vector<T>& from) {
  DeviceArray<T> there(stream.device(), from.size());
  detail::copy_bytes(stream, there.data(), from.data(), from.size() * sizeof(T));
  stream.wait();
  return there;
}

}  // namespace capstan
