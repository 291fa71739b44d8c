// stand_in.hpp -- a GPU's work done by the host, for tests and where there is no GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>

namespace capstan::gpu {

/// What was given to the stream of a stand-in, in order. It is done by the thread that waits for it. Any
/// thread; all queues of the process share one mutex, as one may wait for another.
class StandInQueue {
 public:
  static std::shared_ptr<StandInQueue> of_device(int device);

  void put(std::function<void()> work);
  /// The same of what a GPU's stream refuses, or gives to another GPU, where the calling thread has not
  /// selected the stream's device (On): kernels. REQUIRES: it has.
  void launch(std::function<void()> work);
  /// How much has been given to it.
  std::uint64_t given() const;
  /// Until so much is done. Throws what the work has thrown.
  void do_until(std::uint64_t count);
  /// One piece, if one is left; whether `count` are done.
  bool do_one(std::uint64_t count);

 private:
  bool step();

  int device_ = 0;
  std::deque<std::function<void()>> left_;
  std::uint64_t done_ = 0;
  std::exception_ptr error_;
};

/// This thread's, for kernels; -1 where it has selected none. Returns the one before.
int select_stand_in(int device) noexcept;

/// All that was given to any stream of a stand-in, as a GPU does before memory is freed.
void finish_stand_in(int device) noexcept;

/// Memory of a stand-in, which counts: null where it has no room. Where others are to map it, it lies in a
/// file without a name.
struct StandInAllocation {
  std::byte* memory = nullptr;
  int file = -1;
};
StandInAllocation allocate_of_stand_in(int device, std::size_t bytes, bool for_others);
void free_of_stand_in(int device, std::byte* memory, std::size_t bytes, int file) noexcept;
/// Memory of a stand-in of another process, or null. `unmap` it.
std::byte* map_of_stand_in(std::int64_t process, int file, std::size_t bytes);
void unmap_of_stand_in(std::byte* memory, std::size_t bytes) noexcept;

struct StandInMemory {
  std::uint64_t bytes = 0;
  std::uint64_t used = 0;
};
/// REQUIRES: there is one of that number.
StandInMemory memory_of_stand_in(int device);
int stand_ins() noexcept;

}  // namespace capstan::gpu
