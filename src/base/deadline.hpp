// deadline.hpp -- points in time that lie a duration ahead, however long the duration.
#pragma once

#include <chrono>

namespace capstan {

/// The end of time where `timeout` is longer than what is left of it; `now` where `timeout` is negative.
template <class Duration>
std::chrono::steady_clock::time_point deadline_after(
    Duration timeout, std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now()) {
  constexpr auto kEnd = std::chrono::steady_clock::time_point::max();
  if (timeout <= Duration::zero()) return now;
  return timeout < std::chrono::floor<Duration>(kEnd - now) ? now + timeout : kEnd;
}

}  // namespace capstan
