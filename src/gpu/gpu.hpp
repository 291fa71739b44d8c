// gpu.hpp -- the GPUs of this process: which there are, their memory, streams of work. The only way to CUDA's
// own calls.
//
// A build without CUDA has all of this and no GPU. Where there is none, stand-ins can be used: memory and a
// core of the host that behave as GPUs do.
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

/// How many GPUs this process may use. 0 without CUDA, a driver, or a GPU; then why_none() says which.
int count() noexcept;
std::string why_none();
/// Whether this process has asked CUDA for its GPUs, with count() or otherwise. A child that it forks from
/// then on finds none that works.
bool was_used() noexcept;

/// From now on the GPUs of this process are so many stand-ins, with so much memory each, for tests and for
/// programs that are tried where there is no GPU. What is given to a stream is done when somebody waits for
/// it, and not before, so that who forgets to wait sees it. 0: those that there are. REQUIRES: there is no
/// Stream, Event or Memory.
void use_stand_ins(int gpus, std::uint64_t bytes_each = std::uint64_t{4} << 30) noexcept;
bool are_stand_ins() noexcept;

struct Info {
  std::string name;
  std::string bus;  // "0000:17:00.0"; "none" of a stand-in
  int major = 0;    // compute capability
  int minor = 0;
  std::uint64_t bytes = 0;       // of its memory
  std::uint64_t free_bytes = 0;  // now
};
/// Throws Error: out_of_range when there is no such device; internal.
Info info(int device);

class Event;

/// Work that a GPU does one piece after another. Used by one thread at a time. Throws Error.
class Stream {
 public:
  explicit Stream(int device);

  int device() const noexcept { return device_; }
  /// Until all that has been given to it is done. Throws Error(internal) when any of it failed.
  void wait() const;
  /// What is given to it from now on begins after the event, which may be another stream's.
  void begin_after(const Event& event) const;
  /// CUDA's own (a cudaStream_t), for code in this folder; null of a stand-in.
  void* handle() const noexcept { return handle_.get(); }
  /// A stand-in's, for code in this folder; null of a GPU.
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

/// Whether an Event knows when it was; a GPU records those that do not for less.
enum class Timing : std::uint8_t { no, yes };

/// A moment in a stream's work; one that has not been recorded has passed.
class Event {
 public:
  explicit Event(int device, Timing timing = Timing::no);
  /// REQUIRES: a stream of its device.
  void record(const Stream& stream);
  /// Until the stream has come to it. Throws Error(internal) when the work before it failed.
  void wait() const;
  /// Whether it has; never waits.
  bool done() const;
  /// Waits for both. Between them, on the GPU's clock. REQUIRES: Timing::yes; both were recorded.
  double milliseconds_since(const Event& earlier) const;

 private:
  friend class Stream;
  struct Destroy {
    int device;
    void operator()(void* handle) const noexcept;
  };
  /// Of a stand-in.
  struct Moment;
  int device_;
  Timing timing_;
  std::unique_ptr<void, Destroy> handle_;
  std::shared_ptr<Moment> moment_;
};

/// Who may read and write a Memory: this process, or others of this host as well (see MappedMemory).
enum class Reach : std::uint8_t { process, host };

/// Bytes in a GPU's memory, which this thread must not touch itself. Waits for the GPU when it goes.
class Memory {
 public:
  Memory() = default;
  /// Not initialised. Throws Error(resource_exhausted) that names the device and what it has left; the device
  /// goes on working.
  Memory(int device, std::size_t bytes, Reach reach = Reach::process);
  /// The same. Returns nothing if the device has too little memory left.
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
    int file;  // of a stand-in's memory that others may map; or -1
    void operator()(std::byte* bytes) const noexcept;
  };
  std::unique_ptr<std::byte, Free> bytes_;
  std::size_t size_ = 0;
};

/// The memory of a GPU that another process of this host has, or this one: for this thread's kernels.
class MappedMemory {
 public:
  /// For whoever is to map it; of memory that CUDA gives to no other process, for this one alone. REQUIRES:
  /// Reach::host, and it lives as long as it is mapped.
  static std::vector<std::byte> key(int device, const Memory& memory);

  MappedMemory() = default;
  /// For kernels on `device`. Holds nothing where that cannot be: it is empty, or the memory of a GPU that
  /// this one does not reach. REQUIRES: a key from this host.
  MappedMemory(int device, std::span<const std::byte> key);

  std::byte* data() const noexcept { return bytes_.get(); }

 private:
  struct Key;
  struct Unmap {
    enum class How : std::uint8_t { not_at_all, stand_in, gpu };
    How how;
    int device;
    std::size_t size;
    void operator()(std::byte* bytes) const noexcept;
  };
  std::unique_ptr<std::byte, Unmap> bytes_;
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

/// So many values at least. What was there is lost where they are made anew, and is not there beside them.
template <class T>
void grow(Values<T>& values, int device, std::size_t count) {
  if (values.size() >= count) return;
  values = {};
  values = Values<T>(device, count);
}

/// Bytes in the memory of the host that every GPU copies to and from beside other work. Not initialised.
/// Waits for the process's GPUs when it goes.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  /// Throws Error(resource_exhausted).
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

/// Between any two memories, in the stream's order. The host's has to stay until then, and is copied beside
/// other work only where it is pinned.
void copy(const Stream& stream, void* to, const void* from, std::size_t bytes);
void fill_with_zeros(const Stream& stream, void* memory, std::size_t bytes);

}  // namespace capstan::gpu
