// watchdog.hpp -- detects stalls: closures are in flight, and none ends.
#pragma once

#include <chrono>
#include <cstdint>

namespace capstan::coordinator {

/// Used by the thread that drives the control loop.
class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  /// `timeout` 0: never reports a stall.
  explicit Watchdog(std::chrono::milliseconds timeout) : timeout_(timeout) {}
  bool on() const noexcept { return timeout_.count() > 0; }
  /// Interval between two calls of stalled().
  std::chrono::milliseconds period() const noexcept;
  /// Returns true if closures were in flight for the whole timeout and `ended`, the number of closures that
  /// have ended, did not change; returns true again after every further timeout.
  bool stalled(Clock::time_point now, std::uint64_t ended, bool in_flight);

 private:
  std::chrono::milliseconds timeout_;
  std::uint64_t ended_ = 0;
  Clock::time_point since_{};
  bool watching_ = false;
};

}  // namespace capstan::coordinator
