// gpu.hpp -- the GPUs of this process: which there are, their memory, streams of work. The only way to CUDA's
// own calls.
//
// A build without CUDA has all of this and no GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace capstan::device {

/// How many GPUs this process may use. 0 without CUDA, a driver, or a GPU; then why_none() says which.
int count() noexcept;
std::string why_none();

struct Info {
  std::string name;
  std::string bus;  // "0000:17:00.0"
  int major = 0;    // compute capability
  int minor = 0;
  std::uint64_t bytes = 0;       // of its memory
  std::uint64_t free_bytes = 0;  // now
};
/// Throws Error: out_of_range when there is no such device; internal.
Info info(int device);

/// Work that a GPU does one piece after another. Used by one thread at a time. Throws Error.
class Stream {
 public:
  explicit Stream(int device);

  int device() const noexcept { return device_; }
  /// Until all that has been given to it is done. Throws Error(internal) when any of it failed.
  void wait() const;
  /// CUDA's own (a cudaStream_t), for code in this folder.
  void* handle() const noexcept { return handle_.get(); }

 private:
  struct Destroy {
    void operator()(void* handle) const noexcept;
  };
  int device_;
  std::unique_ptr<void, Destroy> handle_;
};

/// A moment in a stream's work.
class Event {
 public:
  Event();
  void record(const Stream& stream);
  /// Waits for both. Between them, on the GPU's clock.
  double milliseconds_since(const Event& earlier) const;

 private:
  struct Destroy {
    void operator()(void* handle) const noexcept;
  };
  std::unique_ptr<void, Destroy> handle_;
};

/// Bytes in a GPU's memory, which this thread must not touch itself.
class Memory {
 public:
  Memory() = default;
  /// Not initialised. Throws Error(resource_exhausted) that names the device and what it has left; the device
  /// goes on working.
  Memory(int device, std::size_t bytes);

  std::byte* data() const noexcept { return bytes_.get(); }
  std::size_t size() const noexcept { return size_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const noexcept;
  };
  std::unique_ptr<std::byte, Free> bytes_;
  std::size_t size_ = 0;
};

/// `count` values of T in a GPU's memory.
template <class T>
class Values {
 public:
  Values() = default;
  Values(int device, std::size_t count) : bytes_(device, count * sizeof(T)) {}

  T* data() const noexcept { return reinterpret_cast<T*>(bytes_.data()); }
  std::size_t size() const noexcept { return bytes_.size() / sizeof(T); }

 private:
  Memory bytes_;
};

/// Between any two memories, in the stream's order. The host's has to stay until then, and is copied beside
/// other work only where it is pinned.
void copy(const Stream& stream, void* to, const void* from, std::size_t bytes);
void fill_with_zeros(const Stream& stream, void* memory, std::size_t bytes);

}  // namespace capstan::device
