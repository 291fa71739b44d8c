// communicator.hpp -- GPUs of one process that combine and share arrays, in the order of their streams' work.
//
// By NCCL; by the host, in double and in the order of the GPUs, where they are stand-ins.
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

/// Integers wrap around and have no mean. Which of two numbers is the larger is not said of what is not one.
enum class Combine : std::uint8_t { sum, minimum, maximum, product, mean };

/// An array of each GPU, in its memory; both may be the same.
struct Part {
  const void* in = nullptr;
  void* out = nullptr;
};

/// What all GPUs of a group do together.
struct GroupCall {
  enum class Kind : std::uint8_t { all_reduce, all_gather, reduce_scatter, broadcast };
  Kind kind = Kind::all_reduce;
  DType dtype = DType::float32;
  std::size_t count = 0;  // elements of the shorter array of a GPU
  Combine combine = Combine::sum;
  int root = 0;
};
/// "all_reduce of 12 float32".
std::string to_string(const GroupCall& call);

class GroupDriver;

/// "" where several GPUs can be a group, else what is missing and what to do.
std::string why_no_group();

/// Calls return when the work has been given to the streams. Any thread, but a stream is used by one at a
/// time. A group that has failed gives its error to everybody and does nothing more; make another, with
/// streams that are still in order. Numbers of parts and roots are those of the streams.
///
/// A DType::boolean is a byte, which is added as a std::uint8_t.
class Communicator {
 public:
  /// One stream of each GPU, which stay while this lives. Waits for the end of groups of these GPUs that were
  /// given up, for `timeout` at most. Throws Error: invalid_argument for no GPU, and for one that is named
  /// twice; unimplemented when there are several and this build has no NCCL; failed_precondition when one of
  /// those groups does not end; internal.
  explicit Communicator(std::vector<const Stream*> streams, std::chrono::milliseconds timeout = kEndTimeout);
  /// Gives up what has not been waited for. Waits for the end, for kEndTimeout at most.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  int size() const noexcept { return static_cast<int>(streams_.size()); }
  int device(int rank) const { return streams_[static_cast<std::size_t>(rank)]->device(); }

  // All throw Error: invalid_argument for another number of parts, a mean of integers, a root that is not
  // there; internal; what the group has failed with.

  /// `count` elements of each `in`, combined, into every `out`.
  void all_reduce(Combine combine, DType dtype, std::size_t count, std::span<const Part> parts);
  /// `count` elements of each `in`, in the order of the GPUs, into every `out`.
  void all_gather(DType dtype, std::size_t count, std::span<const Part> parts);
  /// Of size() * count elements of each `in`, combined, the r-th `count` into the r-th `out`.
  void reduce_scatter(Combine combine, DType dtype, std::size_t count, std::span<const Part> parts);
  /// `count` elements of the root's `in` into every `out`.
  void broadcast(int root, DType dtype, std::size_t count, std::span<const Part> parts);

  /// Until all that has been given to the streams is done. When NCCL reports an error, when work has failed,
  /// or when a call is not done after so long, the group is given up. Throws Error: internal;
  /// deadline_exceeded naming the GPUs that did not come to the last call, or did not end it.
  void wait(std::chrono::milliseconds timeout);
  /// The same for one of the streams, by the thread that uses it.
  void wait(int rank, std::chrono::milliseconds timeout);

  /// Whether it has, and no more is to be expected of it.
  bool has_failed() const;

 private:
  void give(const GroupCall& call, std::span<const Part> parts);
  void give_to_one(const GroupCall& call, const Part& part);
  void check(const GroupCall& call, std::span<const Part> parts) const;
  void await(std::span<const int> ranks, std::chrono::milliseconds timeout);
  bool have_done(std::span<const int> ranks);
  void give_up_late_call(std::span<const int> ranks, std::chrono::milliseconds timeout);
  std::vector<int> devices_not_past(const std::vector<Event>& events) const;
  [[noreturn]] void fail(std::exception_ptr error);

  std::vector<const Stream*> streams_;
  mutable std::mutex mutex_;
  std::vector<Event> before_;  // the last call, by stream
  std::vector<Event> after_;
  std::vector<Event> end_;  // what is waited for
  std::string last_;        // call; "" when there was none
  std::exception_ptr failure_;
  std::unique_ptr<GroupDriver> driver_;  // null of one GPU
};

}  // namespace capstan::gpu
