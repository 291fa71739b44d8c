// watchdog.cpp -- compares counts of ended closures.
#include "coordinator/scheduling/watchdog.hpp"

#include <algorithm>

namespace capstan::coordinator {

std::chrono::milliseconds Watchdog::period() const noexcept {
  return std::max(timeout_ / 10, std::chrono::milliseconds(1));
}

bool Watchdog::stalled(Clock::time_point now, std::uint64_t ended, bool in_flight) {
  if (!in_flight || !watching_ || ended != ended_) {
    watching_ = in_flight;
    ended_ = ended;
    since_ = now;
    return false;
  }
  if (now < since_ + timeout_) return false;
  since_ = now;
  return true;
}

}  // namespace capstan::coordinator
