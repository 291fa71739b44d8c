// stand_in.hpp -- emulates a GPU on the host, for tests and for hosts without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>

namespace capstan::gpu {

/// The work queue of a stand-in's stream. Work runs in order, on the thread that waits for it. Thread-safe;
/// all queues of the process share one mutex, because one may wait for another.
class StandInQueue {
 public:
  static std::shared_ptr<StandInQueue> of_device(int device);

  void enqueue(std::function<void()> work);
  /// Enqueues a kernel or a copy. REQUIRES: the calling thread has selected the queue's device (DeviceGuard);
  /// otherwise a GPU would reject the launch or run it on another device.
  void launch(std::function<void()> work);
  /// Number of tasks enqueued so far.
  std::uint64_t enqueued() const;
  /// Runs tasks until `count` are done. Throws the exception of a failed task.
  void run_until(std::uint64_t count);
  /// Runs one task if one is pending; returns true if `count` tasks are done.
  bool run_one(std::uint64_t count);

 private:
  bool step();

  int device_ = 0;
  std::deque<std::function<void()>> pending_;
  std::uint64_t done_ = 0;
  std::exception_ptr error_;
};

/// Selects the stand-in for kernels of the calling thread, or none with -1. Returns the previous one.
int select_stand_in(int device) noexcept;

/// Runs all tasks of all streams of a stand-in, as a GPU does before it frees memory.
void finish_stand_in(int device) noexcept;

/// Memory allocated by a stand-in; null if the stand-in has too little left. Shared memory is in an anonymous
/// file.
struct StandInAllocation {
  std::byte* memory = nullptr;
  int file = -1;  // -1 unless shared
};
StandInAllocation allocate_of_stand_in(int device, std::size_t bytes, bool is_shared);
void free_of_stand_in(int device, std::byte* memory, std::size_t bytes, int file) noexcept;
/// Maps the memory of a stand-in of another process; null on failure. Release it with unmap_of_stand_in.
std::byte* map_of_stand_in(std::int64_t process, int file, std::size_t bytes);
void unmap_of_stand_in(std::byte* memory, std::size_t bytes) noexcept;

struct StandInMemory {
  std::uint64_t bytes = 0;
  std::uint64_t used = 0;
};
/// REQUIRES: the device exists.
StandInMemory memory_of_stand_in(int device);
int stand_ins() noexcept;

}  // namespace capstan::gpu
