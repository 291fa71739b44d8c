// poll.hpp -- waits for progress of other threads or processes, with a deadline.
#pragma once

#include <chrono>
#include <thread>

namespace capstan {

/// Longer than any healthy operation takes, even under a sanitizer on a busy machine.
inline constexpr std::chrono::seconds kPollLimit{20};

/// Polls `done` every millisecond; returns false if `limit` passes first.
template <class Done>
bool poll_until(const Done& done, std::chrono::milliseconds limit = kPollLimit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // between two polls
  }
  return true;
}

/// Calls `look` until it returns a value; returns nothing if kPollLimit passes first.
template <class Look>
auto poll(const Look& look) {
  auto answer = look();
  poll_until([&] { return answer.has_value() || (answer = look()).has_value(); });
  return answer;
}

}  // namespace capstan
