// backoff.hpp -- spins and yields between the polls of a thread, and decides when the thread should sleep.
#pragma once

#include <chrono>

namespace capstan {

/// Back-off for a thread that polls for work. It spins between polls, yields after every 32nd poll, and after
/// some time tells the caller to sleep. A long yield means that another thread ran, so the core is shared. On
/// a shared core the thread polls for a shorter time, because each poll delays the other thread. It also
/// migrates to another core from time to time. The scheduler does not balance threads that yield to each
/// other, even if another core is idle. Used by one thread.
class Backoff {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = std::chrono::microseconds;

  /// Time to poll before sleeping: `unshared` if no other thread uses the core, else `shared`.
  Backoff(Time unshared, Time shared) noexcept : unshared_(unshared), shared_(shared) {}

  /// Call after a poll that found nothing. Returns true to poll again, false to sleep.
  bool pause() noexcept;
  /// Call after a poll that found work.
  void reset() noexcept { polls_ = 0; }

 private:
  static constexpr unsigned kPollsPerClockRead = 32;

  Time unshared_;
  Time shared_;
  unsigned polls_ = 0;
  Clock::time_point since_{};
};

}  // namespace capstan
