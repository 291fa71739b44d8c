// backoff.cpp -- spinning, yielding, and detection of a shared core.
#include "base/backoff.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace capstan {
namespace {

using Clock = Backoff::Clock;

/// sched_yield takes less than a microsecond if no other thread waits for the core. A switch to another
/// polling thread and back takes at least this long.
constexpr std::chrono::nanoseconds kLongYield{4000};
/// Long yields after which the core counts as shared. Interrupts also make a yield long, but rarely this many
/// before kShortYieldsUntilUnshared short ones in a row.
constexpr unsigned kLongYieldsUntilShared = 4;
/// Consecutive short yields after which the core counts as unshared again.
constexpr unsigned kShortYieldsUntilUnshared = 200;
/// A migration takes about 100 microseconds. The interval to the next one doubles each time, until the core
/// counts as unshared.
constexpr std::chrono::milliseconds kMinMigrationInterval{10};
constexpr std::chrono::milliseconds kMaxMigrationInterval{1000};

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Sleeps briefly, so that the scheduler can place this thread on an idle core. If the thread wakes up on the
/// same core, migrates it to any other core that it may use.
void migrate_to_another_core() noexcept {
  const int here = sched_getcpu();
  std::this_thread::sleep_for(std::chrono::nanoseconds(1));
  cpu_set_t allowed;
  if (here < 0 || sched_getcpu() != here || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<unsigned>(here), &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
  (void)sched_setaffinity(0, sizeof allowed, &allowed);  // cannot fail: it was the mask before
}

/// Detects whether other threads compete for the calling thread's core.
class SharedCoreDetector {
 public:
  bool shared() const noexcept { return long_yields_ >= kLongYieldsUntilShared; }

  /// Yields the core, and migrates to another one if this one is shared.
  void yield(Clock::time_point now) noexcept {
    sched_yield();
    const auto after = Clock::now();
    if (after - now <= kLongYield) {
      if (++short_yields_ >= kShortYieldsUntilUnshared) {
        long_yields_ = 0;
        migration_interval_ = kMinMigrationInterval;
      }
      return;
    }
    short_yields_ = 0;
    if (++long_yields_ < kLongYieldsUntilShared || after < next_migration_) return;
    migrate_to_another_core();
    next_migration_ = Clock::now() + migration_interval_;
    migration_interval_ = std::min(2 * migration_interval_, kMaxMigrationInterval);
  }

 private:
  unsigned long_yields_ = 0;
  unsigned short_yields_ = 0;
  Clock::time_point next_migration_{};
  std::chrono::milliseconds migration_interval_ = kMinMigrationInterval;
};

thread_local SharedCoreDetector core;

}  // namespace

bool Backoff::pause() noexcept {
  if (++polls_ % kPollsPerClockRead != 0) {
    relax();
    return true;
  }
  const auto now = Clock::now();
  if (polls_ == kPollsPerClockRead) since_ = now;
  if (now - since_ >= (core.shared() ? shared_ : unshared_)) return false;
  core.yield(now);
  return true;
}

}  // namespace capstan
