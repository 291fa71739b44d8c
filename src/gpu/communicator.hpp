// communicator.hpp -- collectives between the GPUs of one process, in stream order.
//
// NCCL implements them. For stand-ins, the host computes them in double, in the order of the GPUs.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "capstan/dtype.hpp"
#include "gpu/async_teardown.hpp"
#include "gpu/gpu.hpp"

namespace capstan::gpu {

/// Integers wrap around and have no mean. The minimum and maximum with a NaN operand are unspecified.
enum class Combine : std::uint8_t { sum, minimum, maximum, product, mean };

/// The arrays of one GPU, in its memory; `in` and `out` may be equal.
struct Part {
  const void* in = nullptr;
  void* out = nullptr;
};

/// A collective call of all GPUs of a group.
struct GroupCall {
  enum class Kind : std::uint8_t { all_reduce, all_gather, reduce_scatter, broadcast };
  Kind kind = Kind::all_reduce;
  DType dtype = DType::float32;
  std::size_t count = 0;  // number of elements of the shorter of a GPU's two arrays
  Combine combine = Combine::sum;
  int root = 0;
};
/// Returns text such as "all_reduce of 12 float32".
std::string to_string(const GroupCall& call);

class GroupDriver;

/// Returns "" if several GPUs can form a group, otherwise the missing part and a remedy.
std::string why_no_group();

/// A group of GPUs. Collectives are asynchronous: they return once the work is enqueued on the streams. Any
/// thread may call them, but each stream is used by one thread at a time. Once a group has failed, all calls
/// throw its error; create another group with intact streams. Parts and roots are indexed like the streams.
///
/// DType::boolean is one byte and is added as std::uint8_t.
class Communicator {
 public:
  /// Creates a group of one stream per GPU; the streams must outlive it. Waits up to `timeout` for the
  /// teardown of failed groups on these GPUs. Throws Error: invalid_argument if there is no GPU or a GPU
  /// occurs twice; unimplemented if there are several GPUs and no NCCL; failed_precondition if a teardown
  /// does not finish; internal.
  explicit Communicator(std::vector<const Stream*> streams,
                        std::chrono::milliseconds timeout = kTeardownTimeout);
  /// Aborts unfinished calls. Waits for the teardown, up to kTeardownTimeout.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int size() const noexcept { return static_cast<int>(streams_.size()); }
  int device(int rank) const { return streams_[static_cast<std::size_t>(rank)]->device(); }

  // All collectives throw Error: invalid_argument for a wrong number of parts, a mean of integers or an
  // invalid root; internal; the error with which the group has failed.

  /// Combines `count` elements of each `in` into every `out`.
  void all_reduce(Combine combine, DType dtype, std::size_t count, std::span<const Part> parts);
  /// Concatenates `count` elements of each `in`, in the order of the GPUs, into every `out`.
  void all_gather(DType dtype, std::size_t count, std::span<const Part> parts);
  /// Combines size() * count elements of each `in`, and writes the r-th `count` results into the r-th `out`.
  void reduce_scatter(Combine combine, DType dtype, std::size_t count, std::span<const Part> parts);
  /// Copies `count` elements of the root's `in` into every `out`.
  void broadcast(int root, DType dtype, std::size_t count, std::span<const Part> parts);

  /// Blocks until all work enqueued on the streams is done. Fails the group if NCCL reports an error, work
  /// fails, or a call takes longer than `timeout`. Throws Error: internal; deadline_exceeded with the GPUs
  /// that did not start or did not finish the last call.
  void wait(std::chrono::milliseconds timeout);
  /// Waits for one of the streams only; called by the thread that uses it.
  void wait(int rank, std::chrono::milliseconds timeout);

  /// Returns true if the group has failed and cannot be used any longer.
  bool has_failed() const;

 private:
  void enqueue(const GroupCall& call, std::span<const Part> parts);
  void enqueue_copy(const GroupCall& call, const Part& part);
  void check(const GroupCall& call, std::span<const Part> parts) const;
  void await(std::span<const int> ranks, std::chrono::milliseconds timeout);
  bool are_done(std::span<const int> ranks);
  void fail_after_timeout(std::span<const int> ranks, std::chrono::milliseconds timeout);
  /// Devices whose stream has not reached its event.
  std::vector<int> devices_before(const std::vector<Event>& events) const;
  [[noreturn]] void fail(std::exception_ptr error);

  std::vector<const Stream*> streams_;
  mutable std::mutex mutex_;
  std::vector<Event> before_;  // start of the last call, by stream
  std::vector<Event> after_;   // end of the last call, by stream
  std::vector<Event> waited_;  // the point that wait() waits for, by stream
  std::string last_;           // the last call; "" if there was none
  std::exception_ptr failure_;
  std::unique_ptr<GroupDriver> driver_;  // null for a single GPU
};

}  // namespace capstan::gpu
