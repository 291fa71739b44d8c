// failure_detector.hpp -- which ranks have fallen silent.
#pragma once

#include <chrono>
#include <map>
#include <set>
#include <vector>

namespace capstan::cluster {

/// Ranks are watched from their first heartbeat on. Used by the thread that drives the control loop.
class FailureDetector {
 public:
  using Clock = std::chrono::steady_clock;

  /// `timeout` 0: never.
  explicit FailureDetector(std::chrono::milliseconds timeout) : timeout_(timeout) {}
  bool on() const noexcept { return timeout_.count() > 0; }
  /// Between two heartbeats, and between two looks for them. 0: neither.
  std::chrono::milliseconds period() const noexcept;

  void heard(int rank, Clock::time_point now);
  /// The rank has died: each is one life, so that what is still heard of it means nothing.
  void forget(int rank);
  /// Ranks of which nothing has been heard for so long that the timeout is over by the next look; each once.
  /// When nobody has looked for long, this process was stopped: that time is no rank's silence.
  std::vector<int> silent(Clock::time_point now);
  /// Until the next look is due.
  std::chrono::milliseconds until_look(Clock::time_point now) const;

 private:
  std::chrono::milliseconds timeout_;
  std::map<int, Clock::time_point> heard_;  // by rank
  std::set<int> gone_;
  Clock::time_point looked_{};
};

}  // namespace capstan::cluster
