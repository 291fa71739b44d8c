// result.hpp -- the result of a scheduled closure, and how a thread waits for it.
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

/// Waits for a condition, and makes progress meanwhile.
class Waiter {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  virtual ~Waiter() = default;
  /// Blocks until done() returns true; returns false if the deadline passes first. Any thread. Several
  /// threads may call done().
  virtual bool wait(const std::function<bool()>& done, std::optional<Deadline> deadline) = 0;
  /// There is new work. Any thread.
  virtual void nudge() = 0;
  /// There is new work, which may wait for 0.1 ms or for the next nudge. Any thread.
  virtual void nudge_soon() {}
  /// As nudge(); the work may be due before the thread that sleeps would wake up.
  virtual void nudge_sleeper() { nudge(); }
};

/// Histogram of the waits of fetches. Lock-free; any thread.
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

/// State that all results of a coordinator share.
struct ResultBoard {
  explicit ResultBoard(std::shared_ptr<Waiter> who) : waiter(std::move(who)) {}

  std::shared_ptr<Waiter> waiter;
  std::mutex mutex;
  std::optional<Error> breakdown;  // error of all pending results, once `broken`
  std::atomic<bool> broken{false};
  FetchTimes fetches;
};

struct ClosureExtras;

/// Shared by the program and the queue. Written once, before `state` changes.
struct Result {
  enum class State : std::uint8_t { pending, ready, failed };

  explicit Result(std::shared_ptr<ResultBoard> shared_board,
                  std::unique_ptr<ClosureExtras> closure_extras = {});
  ~Result();
  bool pending() const noexcept { return state.load(std::memory_order_acquire) == State::pending; }
  /// Does nothing if it is settled already.
  void settle(State to, Code with, std::vector<std::byte> text) {
    if (!pending()) return;
    bytes = std::move(text);
    code = with;
    state.store(to, std::memory_order_release);
  }

  std::shared_ptr<ResultBoard> board;
  std::unique_ptr<ClosureExtras> extras;  // of its closure
  std::vector<std::byte> bytes;           // the value, or the text of the error
  std::atomic<State> state{State::pending};
  Code code = Code::ok;
  mutable bool awaited = false;  // closures wait for it; guarded by the board's mutex
  std::int16_t producer = -1;    // worker that produced it; -1: none
};

}  // namespace capstan::coordinator
