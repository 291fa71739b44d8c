// stop_request.hpp -- decides when a training saves a checkpoint and exits early, to be continued with
// --resume.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/time_left.hpp"
#include "capstan/checkpoint.hpp"

namespace capstan {
class Settings;
}

namespace capstan::train {

struct StopOptions {
  int signal = 0;                       ///< that requests a stop; 0: none
  std::chrono::milliseconds margin{0};  ///< stop this long before the Slurm time limit; 0: ignore the limit
  bool limit_margin_to_quarter =
      false;  ///< reduce the margin to a quarter of the time left at the first query: for short jobs

  /// Reads --save-signal and --save-before-limit.
  static StopOptions from(const Settings& settings);
};

/// Used by the coordinator's main thread only.
class StopRequest {
 public:
  using Clock = std::chrono::steady_clock;
  using QueryTimeLeft = std::function<TimeLeft()>;

  /// Installs the handler of the signal in this process. Call it before the ranks join, so that an early
  /// signal terminates none of them; ranks other than the coordinator ignore the signal.
  static void install_handler(const StopOptions& options);

  /// `can_save`: a checkpoint directory is configured. Without one the training continues, and a signal
  /// causes a warning.
  StopRequest(const StopOptions& options, bool can_save, QueryTimeLeft query = &slurm_time_left);

  /// Returns the reason to save and exit now, or "" to continue. `next`: upper bound of the time until the
  /// next call. Queries Slurm if the time limit is unknown, and again before it returns the limit as the
  /// reason, since an administrator may have extended it.
  std::string reason(std::chrono::milliseconds next, Clock::time_point now = Clock::now());

 private:
  bool signal_received(Clock::time_point now);
  bool limit_is_near(std::chrono::milliseconds next, Clock::time_point now) const;
  void refresh_time_left(Clock::time_point now);

  StopOptions options_;
  bool can_save_;
  QueryTimeLeft query_;
  SaveSchedule signals_;
  TimeLeft answer_;
  Clock::time_point answered_at_{};
  bool queried_ = false;
};

}  // namespace capstan::train
