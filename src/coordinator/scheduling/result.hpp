// result.hpp -- what a scheduled closure has come to, and how a thread waits for it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "capstan/detail/coordinator_statistics.hpp"
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
  /// The same, and it may be needed earlier than a thread that sleeps by now knows.
  virtual void nudge_sleeper() { nudge(); }
};

/// How long fetches waited. Any thread, without a lock.
class FetchTimes {
 public:
  void add(std::uint64_t nanoseconds) noexcept {
    buckets_[Histogram::bucket_of(nanoseconds)].fetch_add(1, std::memory_order_relaxed);
    if (nanoseconds > 0) nanoseconds_.fetch_add(nanoseconds, std::memory_order_relaxed);
  }
  Histogram read() const {
    Histogram out;
    for (std::size_t i = 0; i < Histogram::kBuckets; ++i) {
      out.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
      out.count += out.buckets[i];
    }
    out.seconds = static_cast<double>(nanoseconds_.load(std::memory_order_relaxed)) * 1e-9;
    return out;
  }

 private:
  std::array<std::atomic<std::uint64_t>, Histogram::kBuckets> buckets_{};
  std::atomic<std::uint64_t> nanoseconds_{0};
};

/// What all results of a coordinator share.
struct ResultBoard {
  explicit ResultBoard(std::shared_ptr<Waiter> who) : waiter(std::move(who)) {}

  std::shared_ptr<Waiter> waiter;
  std::mutex mutex;
  std::optional<Error> breakdown;  // of what is pending, from now on
  std::atomic<bool> broken{false};
  FetchTimes fetches;
};

struct ClosureExtras;

/// Shared by the program and the queue. Written once, before `state` says so.
struct Result {
  enum class State : std::uint8_t { pending, ready, failed };

  explicit Result(std::shared_ptr<ResultBoard> shared, std::unique_ptr<ClosureExtras> what = {});
  ~Result();
  bool pending() const noexcept { return state.load(std::memory_order_acquire) == State::pending; }
  /// Does nothing when it has come to something already.
  void settle(State to, Code with, std::vector<std::byte> text) {
    if (!pending()) return;
    bytes = std::move(text);
    code = with;
    state.store(to, std::memory_order_release);
  }

  std::shared_ptr<ResultBoard> board;
  std::unique_ptr<ClosureExtras> extras;  // of its closure, which is smaller without
  std::vector<std::byte> bytes;           // the value, or the text of the error
  std::atomic<State> state{State::pending};
  Code code = Code::ok;
  mutable bool awaited = false;  // closures wait for it; under the board's mutex
  std::int16_t maker = -1;       // the worker that made it; -1: none
};

}  // namespace capstan::coordinator
