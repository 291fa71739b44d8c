// watchdog.hpp -- notices that closures are under way and none ends.
#pragma once

#include <chrono>
#include <cstdint>

namespace capstan::coordinator {

/// Used by the thread that drives the control loop.
class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;

  /// `timeout` 0: never.
  explicit Watchdog(std::chrono::milliseconds timeout) : timeout_(timeout) {}
  bool on() const noexcept { return timeout_.count() > 0; }
  /// How often to look.
  std::chrono::milliseconds period() const noexcept;
  /// True when something has been under way for the whole time and `ended`, a count, has not changed; and
  /// again after as long.
  bool barks(Clock::time_point now, std::uint64_t ended, bool under_way);

 private:
  std::chrono::milliseconds timeout_;
  std::uint64_t ended_ = 0;
  Clock::time_point since_{};
  bool watching_ = false;
};

}  // namespace capstan::coordinator
