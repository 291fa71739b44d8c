// poll.hpp -- asks until there is an answer, for at most twenty seconds.
#pragma once

#include <chrono>
#include <thread>

namespace capstan {

/// What `look` returns, as soon as that is something; nothing when the time is over.
template <class Look>
auto poll(const Look& look) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  auto answer = look();
  while (!answer.has_value() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    answer = look();
  }
  return answer;
}

}  // namespace capstan
