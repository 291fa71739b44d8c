// backoff.hpp -- what a thread does between two looks at something that has not happened yet.
#pragma once

#include <chrono>

namespace capstan {

/// First it looks again at once, then it gives its core away between looks, and after a while it says that it
/// is time to sleep. A yield that takes long has let another thread run, so the core is shared: then the
/// while is short, since every look is taken from somebody who works. One thread.
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
  /// Another thread wanted this core not long ago.
  bool core_is_shared() const noexcept { return yields_unshared_ < kForget; }

 private:
  static constexpr unsigned kLooksATime = 32;  // between two looks at the clock
  static constexpr unsigned kForget = 200;     // yields without company after which the core is ours again

  Time alone_;
  Time shared_;
  unsigned looks_ = 0;
  unsigned yields_unshared_ = kForget;
  Clock::time_point since_{};
};

}  // namespace capstan
