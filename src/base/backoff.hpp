// backoff.hpp -- what a thread does between two looks at something that has not happened yet.
#pragma once

#include <chrono>

namespace capstan {

/// First it looks again at once, then it gives its core away between looks, and after a while it says that it
/// is time to sleep. A yield that takes long has let another thread run, so the core is shared: then the
/// while is short, since every look is taken from somebody who works; and now and then the thread moves to
/// another core that it may use, because the scheduler leaves threads that yield to each other where they
/// are, even beside an idle core. One thread.
class Backoff {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = std::chrono::microseconds;

  /// How long to look before sleeping, on a core of one's own and on a shared one.
  Backoff(Time alone, Time shared) noexcept : alone_(alone), shared_(shared) {}

  /// After a look that found nothing: true = look again, false = sleep.
  bool pause() noexcept;
  /// After a look that found something.
  void reset() noexcept { looks_ = 0; }

 private:
  static constexpr unsigned kLooksATime = 32;  // between two looks at the clock

  Time alone_;
  Time shared_;
  unsigned looks_ = 0;
  Clock::time_point since_{};
};

}  // namespace capstan
