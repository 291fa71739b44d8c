// deadline.hpp -- a deadline from a timeout, without overflow.
#pragma once

#include <chrono>

namespace capstan {

/// Returns `now + timeout`, clamped to the range from `now` to time_point::max().
template <class Duration>
std::chrono::steady_clock::time_point deadline_after(
    Duration timeout, std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now()) {
  constexpr auto kEnd = std::chrono::steady_clock::time_point::max();
  if (timeout <= Duration::zero()) return now;
  return timeout < std::chrono::floor<Duration>(kEnd - now) ? now + timeout : kEnd;
}

}  // namespace capstan
