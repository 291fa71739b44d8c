// closure.hpp -- a function to be run on a worker, with its packed arguments and its result.
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

/// What few closures have. It lies with the result: a queue is as fast as its closures are small.
struct ClosureExtras {
  using Clock = std::chrono::steady_clock;

  int priority = 0;
  int affinity = kAnyWorker;
  std::optional<Clock::time_point> deadline = {};
  bool expired = false;    // has failed by its deadline while it ran, and is not counted as running
  bool completes = false;  // once it has begun, no error of another one cancels it
  std::vector<detail::ArgumentInput> inputs = {};
};

struct Closure {
  std::uint64_t id = 0;
  std::uint32_t function = 0;
  int worker = kAnyWorker;
  bool again = false;    // a worker that has died may have begun it
  bool stamped = false;  // the queue knows when it came
  bool special = false;  // it has extras
  std::vector<std::byte> arguments;
  std::shared_ptr<Result> result;
  detail::Named named = {};  // by its arguments: they are not freed while it is queued or runs

  /// Or null.
  ClosureExtras* extras() const noexcept { return special ? result->extras.get() : nullptr; }
  int priority() const noexcept { return special ? extras()->priority : 0; }
  /// No argument is still to come. One that failed is not.
  bool ready() const;
  /// The arguments with the results that belong in them. REQUIRES: these are there. Throws what a conversion
  /// to the parameter's type throws.
  std::vector<std::byte> whole_arguments() const;
  /// The first argument that failed, or null.
  const Result* failed_input() const;
  /// The worker that made an argument, or kAnyWorker.
  int maker() const;
};

}  // namespace capstan::coordinator
