// failure_detector.hpp -- suspects ranks that send no heartbeat.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

namespace capstan::cluster {

/// Suspects a rank that sends no heartbeat for longer than a timeout. A rank is watched from its first
/// heartbeat on:
///
///   unknown --heard--> alive --check--> suspected --heard--> alive
///   any state --forget--> unknown
///
/// If a call of `check` is late, the excess over the period does not count as silence, since this process was
/// stopped or busy. Used by one thread.
class FailureDetector {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = std::chrono::milliseconds;

  /// Returns the interval between two heartbeats, and between two calls of `check`, for a timeout; 0 for 0.
  static constexpr Time period_of(Time timeout) noexcept {
    return timeout.count() > 0 ? std::max(timeout / 5, Time(1)) : Time(0);
  }
  /// Returns a detector for a coordinator that answers a heartbeat every `period`. Suspects it after
  /// `timeout`, but not before ten periods.
  static FailureDetector for_coordinator(Time period, Time timeout) {
    return FailureDetector(std::max(timeout, 10 * period) + period, period);
  }

  /// Never suspects a rank if the timeout or the period is 0.
  explicit FailureDetector(Time timeout) : FailureDetector(timeout, period_of(timeout)) {}
  FailureDetector(Time timeout, Time period) : timeout_(timeout), period_(period) {}

  bool on() const noexcept { return timeout_.count() > 0 && period_.count() > 0; }
  Time period() const noexcept { return period_; }

  /// Records a heartbeat. If `busy`, the rank is not suspected before its next heartbeat. Returns true if the
  /// rank was suspected.
  bool heard(int rank, Clock::time_point now, bool busy = false);
  /// Stops watching the rank until its next heartbeat.
  void forget(int rank) noexcept { ranks_.erase(rank); }

  /// Returns the newly suspected ranks: those whose timeout passes before the next call. Does nothing within
  /// a period of the last call.
  std::vector<int> check(Clock::time_point now);
  /// Time until the next call of `check` is due.
  Time until_next_check(Clock::time_point now) const;

  bool suspects(int rank) const {
    const auto found = ranks_.find(rank);
    return found != ranks_.end() && found->second.suspected;
  }
  /// Returns true if the rank is alive or suspected.
  bool watches(int rank) const { return ranks_.contains(rank); }

 private:
  struct Watched {
    bool suspected = false;
    bool busy = false;
    Clock::time_point heard;
  };

  Time timeout_;
  Time period_;
  std::map<int, Watched> ranks_;
  Clock::time_point last_check_{};
};

}  // namespace capstan::cluster
