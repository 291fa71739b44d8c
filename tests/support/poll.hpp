// poll.hpp -- waits for what other threads or processes do, with a deadline of twenty seconds.
#pragma once

#include <chrono>
#include <thread>

namespace capstan {

/// Calls `look` until it returns a value; returns nothing if the deadline passes first.
template <class Look>
auto poll(const Look& look) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  auto answer = look();
  while (!answer.has_value() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // between two polls
    answer = look();
  }
  return answer;
}

/// Polls `done`; returns false if the deadline passes first.
template <class Done>
bool poll_until(const Done& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!done()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // between two polls
  }
  return true;
}

}  // namespace capstan
