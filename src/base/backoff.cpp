// backoff.cpp -- spin, yield, and the sign that a core is shared.
#include "base/backoff.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace capstan {
namespace {

using Clock = Backoff::Clock;

/// A yield with nobody waiting for the core is a system call of less than a microsecond; a switch to another
/// thread that looks and yields, and back, takes at least this.
constexpr std::chrono::nanoseconds kAnotherRan{4000};
/// An interrupt makes a yield long, too, but not so many of them.
constexpr unsigned kSurelyShared = 4;
/// Yields without company after which the core is ours again.
constexpr unsigned kForget = 200;
/// A move takes some 100 microseconds. Where it does not help, the next one waits twice as long.
constexpr std::chrono::milliseconds kFirstMoveAfter{10};
constexpr std::chrono::milliseconds kLastMoveAfter{1000};

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// To an idle core, where the scheduler knows of one when it wakes us; otherwise to another that we may use.
void move_to_another_core() noexcept {
  const int here = sched_getcpu();
  std::this_thread::sleep_for(std::chrono::nanoseconds(1));
  cpu_set_t allowed;
  if (here < 0 || sched_getcpu() != here || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<unsigned>(here), &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0) return;
  (void)sched_setaffinity(0, sizeof allowed, &allowed);  // it was allowed before
}

/// What this thread has learnt about its core.
class Core {
 public:
  bool shared() const noexcept { return company_ >= kSurelyShared; }

  /// Gives the core away for a moment.
  void yield(Clock::time_point now) noexcept {
    sched_yield();
    const auto after = Clock::now();
    if (after - now <= kAnotherRan) {
      if (++yields_alone_ >= kForget) {
        company_ = 0;
        between_moves_ = kFirstMoveAfter;
      }
      return;
    }
    yields_alone_ = 0;
    if (++company_ < kSurelyShared || after < next_move_) return;
    move_to_another_core();
    next_move_ = Clock::now() + between_moves_;
    between_moves_ = std::min(2 * between_moves_, kLastMoveAfter);
  }

 private:
  unsigned company_ = 0;
  unsigned yields_alone_ = 0;
  Clock::time_point next_move_{};
  std::chrono::milliseconds between_moves_ = kFirstMoveAfter;
};

thread_local Core core;

}  // namespace

bool Backoff::pause() noexcept {
  if (++looks_ % kLooksATime != 0) {
    relax();
    return true;
  }
  const auto now = Clock::now();
  if (looks_ == kLooksATime) since_ = now;
  if (now - since_ >= (core.shared() ? shared_ : alone_)) return false;
  core.yield(now);
  return true;
}

}  // namespace capstan
