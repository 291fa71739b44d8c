// silence.hpp -- for how long a rank that answers what it is sent has said nothing.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

namespace capstan::cluster {

/// One thread.
class Silence {
 public:
  using Clock = std::chrono::steady_clock;

  /// `period`: between two looks, and two answers; 0: nothing is ever too long. `most`, and ten periods at
  /// least, is too long.
  Silence(std::chrono::milliseconds period, std::chrono::milliseconds most)
      : period_(period), most_(std::max(most, 10 * period)) {}

  void heard(Clock::time_point now) { heard_ = now; }
  /// It will say nothing more, or is not expected to.
  void excuse() { heard_.reset(); }
  bool expected() const noexcept { return heard_.has_value(); }

  /// Whether it has been too long. When nobody has looked for long, this process was stopped or busy: that
  /// time is no silence of the other.
  bool too_long(Clock::time_point now) {
    const auto since_look = now - std::exchange(looked_, now);
    if (!heard_ || period_.count() == 0) return false;
    if (since_look > 2 * period_) heard_ = std::min(now, *heard_ + (since_look - period_));
    return now - *heard_ >= most_;
  }

 private:
  std::chrono::milliseconds period_;
  std::chrono::milliseconds most_;
  std::optional<Clock::time_point> heard_;
  Clock::time_point looked_{};
};

}  // namespace capstan::cluster
