// result.hpp -- what a scheduled closure has come to, and how a thread waits for it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "capstan/error.hpp"

namespace capstan::coordinator {

/// Makes things happen, or sleeps until they have happened.
class Waiter {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  virtual ~Waiter() = default;
  /// Until done() is true; false at the deadline. Any thread. done() may be called by several threads.
  virtual bool wait(const std::function<bool()>& done, std::optional<Deadline> deadline) = 0;
  /// There is something new to do. Any thread.
  virtual void nudge() = 0;
};

/// What all results of a coordinator share.
struct ResultBoard {
  explicit ResultBoard(std::shared_ptr<Waiter> who) : waiter(std::move(who)) {}

  std::shared_ptr<Waiter> waiter;
  std::mutex mutex;
  std::optional<Error> breakdown;  // of what is pending, from now on
  std::atomic<bool> broken{false};
};

/// Shared by the program and the queue. Written once, before `state` says so.
struct Result {
  enum class State : std::uint8_t { pending, ready, failed };

  explicit Result(std::shared_ptr<ResultBoard> shared) : board(std::move(shared)) {}
  bool pending() const noexcept { return state.load(std::memory_order_acquire) == State::pending; }
  /// Does nothing when it has come to something already.
  void settle(State to, Code with, std::vector<std::byte> text) {
    if (!pending()) return;
    bytes = std::move(text);
    code = with;
    state.store(to, std::memory_order_release);
  }

  std::shared_ptr<ResultBoard> board;
  std::vector<std::byte> bytes;  // the value, or the text of the error
  std::atomic<State> state{State::pending};
  Code code = Code::ok;
};

}  // namespace capstan::coordinator
