// save_schedule.hpp -- when the next checkpoint is due.
#pragma once

#include <chrono>
#include <cstdint>

#include "capstan/export.hpp"

namespace capstan {

/// What makes a checkpoint due, whichever comes first. 0: not for this reason.
struct SaveInterval {
  /// Since the last one.
  std::int64_t steps = 0;
  std::chrono::milliseconds time{0};
  /// The share of its time that the program may spend in saves, such as 0.02: the longer the last one took,
  /// the later the next one is due (as SCR's SCR_CHECKPOINT_OVERHEAD). The first one is due at once, since
  /// nobody knows what it takes.
  double overhead = 0;
};

/// One thread, but for the requests.
class CAPSTAN_API SaveSchedule {
 public:
  using Clock = std::chrono::steady_clock;

  /// `step`: the program's first. Throws Error(invalid_argument) when a number is negative, or overhead is 1
  /// or more.
  SaveSchedule(SaveInterval interval, std::int64_t step, Clock::time_point now);

  /// A request has come since the last one, or the interval is over.
  bool due(std::int64_t step, Clock::time_point now) const;
  /// A save at that step kept the program from its work from `begin` to `end`.
  void saved(std::int64_t step, Clock::time_point begin, Clock::time_point end);

  /// A checkpoint is due, whatever the interval, for every schedule of this process. Any thread; a signal
  /// handler, too.
  static void request() noexcept;
  /// From now on this signal is a request, and does nothing else. mpirun hands SIGUSR1 and SIGUSR2 on to
  /// every rank; all but the coordinator ignore them. Throws Error(invalid_argument).
  static void request_on(int signal);

 private:
  SaveInterval interval_;
  std::int64_t step_;
  Clock::time_point saved_at_;
  Clock::duration took_{0};
  bool any_ = false;  // saved
  unsigned requests_seen_;
};

}  // namespace capstan
