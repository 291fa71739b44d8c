// ps_watch.hpp -- which ps cannot be reached: their host, or the way to it, may be gone without a word.
#pragma once

#include <chrono>
#include <map>
#include <vector>

namespace capstan::cluster {

/// A ps is watched from its first beat on. Used by the thread that drives the control loop.
class PsWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// `timeout` 0: never.
  explicit PsWatch(std::chrono::milliseconds timeout) : timeout_(timeout) {}

  /// A beat; `busy`: the next one may be late. True when the ps was silent before.
  bool heard(int rank, bool busy, Clock::time_point now);
  /// It has died, which others notice.
  void forget(int rank) { watched_.erase(rank); }
  /// Ranks that have just fallen silent, each once until it is heard again. When nobody has looked for long,
  /// this process was stopped: that time is no ps's silence.
  std::vector<int> silent(Clock::time_point now);

 private:
  struct Watched {
    Clock::time_point heard;
    bool busy = false;
    bool silent = false;
  };
  std::chrono::milliseconds timeout_;
  std::map<int, Watched> watched_;  // by rank
  Clock::time_point looked_{};
};

}  // namespace capstan::cluster
