// backoff.cpp -- spin, yield, and the sign that a core is shared.
#include "base/backoff.hpp"

#include <sched.h>

namespace capstan {
namespace {

/// A yield with nobody waiting for the core is a system call of about a microsecond; another thread that has
/// work keeps the core for longer than this.
constexpr std::chrono::microseconds kAnotherRan{20};

void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

bool Backoff::pause() noexcept {
  if (++looks_ % kLooksATime != 0) {
    relax();
    return true;
  }
  const auto before = Clock::now();
  if (looks_ == kLooksATime) since_ = before;
  if (before - since_ >= (core_is_shared() ? shared_ : alone_)) return false;
  sched_yield();
  if (Clock::now() - before > kAnotherRan) {
    yields_unshared_ = 0;
  } else if (core_is_shared()) {
    ++yields_unshared_;
  }
  return true;
}

}  // namespace capstan
