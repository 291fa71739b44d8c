// gpu.hpp -- the GPUs of this process, their memory, streams and events. All CUDA calls go through this
// header.
//
// A build without CUDA has the same interface and no GPU. Stand-ins can replace GPUs: host memory and a host
// core with the semantics of a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace capstan::gpu {

class StandInQueue;

/// Number of GPUs that this process can use; 0 without CUDA, driver or GPU. why_none() returns the reason.
int count() noexcept;
std::string why_none();
/// Returns true if this process has initialized CUDA, by count() or otherwise. CUDA does not work in children
/// that are forked afterwards.
bool was_used() noexcept;

/// Replaces the GPUs of this process by `gpus` stand-ins with `bytes_each` of memory, for tests and for trial
/// runs without a GPU; 0 restores the real GPUs. A stand-in executes work only while a thread waits for it,
/// so that tests detect a missing wait. REQUIRES: no Stream, Event or Memory exists.
void use_stand_ins(int gpus, std::uint64_t bytes_each = std::uint64_t{4} << 30) noexcept;
bool are_stand_ins() noexcept;

struct Info {
  std::string name;
  std::string bus;  // PCI address such as "0000:17:00.0"; "none" for a stand-in
  int major = 0;    // compute capability
  int minor = 0;
  std::uint64_t bytes = 0;       // size of its memory
  std::uint64_t free_bytes = 0;  // at the time of the call
};
/// Throws Error: out_of_range if the device does not exist; internal.
Info info(int device);

class Event;

/// An in-order queue of GPU work. Used by one thread at a time. Throws Error.
class Stream {
 public:
  explicit Stream(int device);

  int device() const noexcept { return device_; }
  /// Blocks until all enqueued work is done. Throws Error(internal) if any of it failed.
  void wait() const;
  /// Work that is enqueued from now on starts after `event`, which may be of another stream.
  void begin_after(const Event& event) const;
  /// The cudaStream_t, for code in this directory; null for a stand-in.
  void* handle() const noexcept { return handle_.get(); }
  /// The queue of a stand-in, for code in this directory; null for a GPU.
  StandInQueue* stand_in() const noexcept { return stand_in_.get(); }

 private:
  friend class Event;
  struct Destroy {
    int device;
    void operator()(void* handle) const noexcept;
  };
  int device_;
  std::unique_ptr<void, Destroy> handle_;
  std::shared_ptr<StandInQueue> stand_in_;
};

/// Whether an Event records its time; events without timing are cheaper.
enum class Timing : std::uint8_t { no, yes };

/// A point in a stream's work. An event that was never recorded counts as passed.
class Event {
 public:
  explicit Event(int device, Timing timing = Timing::no);
  /// REQUIRES: the stream is of this event's device.
  void record(const Stream& stream);
  /// Blocks until the stream has reached the event. Throws Error(internal) if the work before it failed.
  void wait() const;
  /// Returns true if the stream has reached the event; never blocks.
  bool done() const;
  /// Waits for both events and returns the time between them on the GPU's clock. REQUIRES: Timing::yes; both
  /// were recorded.
  double milliseconds_since(const Event& earlier) const;

 private:
  friend class Stream;
  struct Destroy {
    int device;
    void operator()(void* handle) const noexcept;
  };
  /// A recording on a stand-in's queue.
  struct Recording;
  int device_;
  Timing timing_;
  std::unique_ptr<void, Destroy> handle_;
  std::shared_ptr<Recording> recording_;
};

/// Processes that may access a Memory: this one, or others of this host as well (see MappedMemory).
enum class Reach : std::uint8_t { process, host };

/// Bytes in GPU memory, which host code must not access. The destructor waits for the GPU.
class Memory {
 public:
  Memory() = default;
  /// Allocates uninitialized memory. Throws Error(resource_exhausted) with the device and its free memory;
  /// the device remains usable.
  Memory(int device, std::size_t bytes, Reach reach = Reach::process);
  /// Returns nullopt if the device has too little free memory.
  [[nodiscard]] static std::optional<Memory> try_allocate(int device, std::size_t bytes,
                                                          Reach reach = Reach::process);

  std::byte* data() const noexcept { return bytes_.get(); }
  std::size_t size() const noexcept { return size_; }

 private:
  friend class MappedMemory;
  struct Free {
    int device;
    bool stand_in;
    std::size_t size;
    int file;  // file of a stand-in's shared memory, or -1
    void operator()(std::byte* bytes) const noexcept;
  };
  std::unique_ptr<std::byte, Free> bytes_;
  std::size_t size_ = 0;
};

/// Memory of a GPU, mapped from another process of this host or from this one, for this process's kernels.
class MappedMemory {
 public:
  /// Returns the key by which another process maps `memory`. If CUDA cannot export it, only this process can
  /// use the key. REQUIRES: Reach::host; `memory` outlives all mappings.
  static std::vector<std::byte> key(int device, const Memory& memory);

  MappedMemory() = default;
  /// Maps memory for kernels on `device`. Empty if the memory is empty or `device` cannot access it.
  /// REQUIRES: the key is from this host.
  MappedMemory(int device, std::span<const std::byte> key);

  std::byte* data() const noexcept { return bytes_.get(); }

 private:
  struct Key;
  struct Unmap {
    enum class How : std::uint8_t { none, stand_in, gpu };
    How how;
    int device;
    std::size_t size;
    void operator()(std::byte* bytes) const noexcept;
  };
  std::unique_ptr<std::byte, Unmap> bytes_;
};

/// `count` values of type T in GPU memory.
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

/// Reallocates `values` if there are fewer than `count`. The content is lost, and the old memory is freed
/// first.
template <class T>
void grow(Values<T>& values, int device, std::size_t count) {
  if (values.size() >= count) return;
  values = {};
  values = Values<T>(device, count);
}

/// Pinned host memory, to and from which every GPU copies asynchronously. Uninitialized. The destructor waits
/// for all GPUs of the process.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  /// Throws Error(resource_exhausted) if the memory cannot be allocated.
  explicit PinnedMemory(std::size_t bytes);

  std::byte* data() const noexcept { return bytes_.get(); }
  std::size_t size() const noexcept { return size_; }

 private:
  struct Free {
    bool stand_in;
    void operator()(std::byte* bytes) const noexcept;
  };
  std::unique_ptr<std::byte, Free> bytes_;
  std::size_t size_ = 0;
};

/// Enqueues a copy between any two memories. Host memory must remain valid until the copy is done; the copy
/// is asynchronous only if that memory is pinned.
void copy(const Stream& stream, void* to, const void* from, std::size_t bytes);
void fill_with_zeros(const Stream& stream, void* memory, std::size_t bytes);

}  // namespace capstan::gpu
