// closure.hpp -- a function to be executed on a worker, with its packed arguments and its result.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "capstan/detail/remote_value.hpp"
#include "coordinator/scheduling/result.hpp"

namespace capstan::coordinator {

constexpr int kAnyWorker = -1;

/// Properties that few closures have. Stored with the result, since the queue is faster with small closures.
struct ClosureExtras {
  using Clock = std::chrono::steady_clock;

  int priority = 0;
  int affinity = kAnyWorker;
  std::optional<Clock::time_point> deadline = {};
  bool expired = false;        // failed by its deadline while it ran; not counted as running
  bool uncancellable = false;  // errors of other closures do not cancel it once it has started
  std::vector<detail::ArgumentInput> inputs = {};
};

struct Closure {
  std::uint64_t id = 0;
  std::uint32_t function = 0;
  int worker = kAnyWorker;
  bool again = false;       // a dead worker may have started it
  bool stamped = false;     // the queue has stored the time at which it was scheduled
  bool has_extras = false;  // see extras()
  std::vector<std::byte> arguments;
  std::shared_ptr<Result> result;
  detail::WorkerObjectRefs named =
      {};  // keep the per-worker objects in its arguments alive until it has ended
  /// Returns the extras, or null.
  ClosureExtras* extras() const noexcept { return has_extras ? result->extras.get() : nullptr; }
  int priority() const noexcept { return has_extras ? extras()->priority : 0; }
  /// Returns true if no argument is pending; failed arguments are not pending.
  bool ready() const;
  /// Returns the arguments with the results of other closures among them. REQUIRES: ready(). Throws what a
  /// conversion to a parameter's type throws.
  std::vector<std::byte> complete_arguments() const;
  /// Returns the first argument that failed, or null.
  const Result* failed_input() const;
  /// Returns the worker that produced the first argument that is a result, or kAnyWorker.
  int input_producer() const;
};

}  // namespace capstan::coordinator
