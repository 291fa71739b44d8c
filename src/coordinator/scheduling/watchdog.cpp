// watchdog.cpp -- a tenth of the time is how exact it is.
#include "coordinator/scheduling/watchdog.hpp"

#include <algorithm>

namespace capstan::coordinator {

std::chrono::milliseconds Watchdog::period() const noexcept {
  return std::max(timeout_ / 10, std::chrono::milliseconds(1));
}

bool Watchdog::barks(Clock::time_point now, std::uint64_t ended, bool under_way) {
  if (!under_way || !watching_ || ended != ended_) {
    watching_ = under_way;
    ended_ = ended;
    since_ = now;
    return false;
  }
  if (now < since_ + timeout_) return false;
  since_ = now;
  return true;
}

}  // namespace capstan::coordinator
