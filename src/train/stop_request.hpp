// stop_request.hpp -- when a training is to save and end before it is done, to be started again with
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
  int signal = 0;                       ///< that asks for it; 0: none does
  std::chrono::milliseconds margin{0};  ///< before the end of a Slurm job's time; 0: that does not matter
  bool at_most_a_quarter = false;       ///< the margin, of the time that was left at first: of short jobs

  /// Of --save-signal and --save-before-limit.
  static StopOptions from(const Settings& settings);
};

/// One thread, the coordinator's.
class StopRequest {
 public:
  using Clock = std::chrono::steady_clock;
  using Ask = std::function<TimeLeft()>;

  /// From now on the signal asks. Before the ranks are joined, so that none ends by a signal that comes
  /// early: those that are not the coordinator ignore it.
  static void listen(const StopOptions& options);

  /// `can_save`: there is a directory for checkpoints. Where there is none the training goes on, with a
  /// warning when a signal asks.
  StopRequest(const StopOptions& options, bool can_save, Ask ask = &slurm_time_left);

  /// Why the training is to save and end now, in words; "" to go on. `next`: how long until it asks again, at
  /// most. Asks Slurm when it does not know the end of the job's time, and once more when that seems to come:
  /// somebody may have moved it.
  std::string reason(std::chrono::milliseconds next, Clock::time_point now = Clock::now());

 private:
  bool was_asked(Clock::time_point now);
  bool is_near(std::chrono::milliseconds next, Clock::time_point now) const;
  void ask_again(Clock::time_point now);

  StopOptions options_;
  bool can_save_;
  Ask ask_;
  SaveSchedule signals_;
  TimeLeft answer_;
  Clock::time_point asked_{};
  bool ever_asked_ = false;
};

}  // namespace capstan::train
