// closure_queue.hpp -- closures that are scheduled or run, and the first error. The rules are those of
// TensorFlow's _CoordinatedClosureQueue (tensorflow/python/distribute/coordinator/cluster_coordinator.py).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capstan/detail/coordinator_statistics.hpp"
#include "capstan/error.hpp"
#include "cluster/membership/membership.hpp"
#include "coordinator/scheduling/closure.hpp"
#include "coordinator/scheduling/closure_priority_queue.hpp"
#include "coordinator/scheduling/result.hpp"
#include "coordinator/scheduling/waiting_closures.hpp"
#include "protocol/push_format.hpp"
#include "strategy/closure_scheduler.hpp"

namespace capstan::coordinator {

/// Where a closure ran, and how long it took.
struct Execution {
  int worker = kAnyWorker;
  std::uint64_t nanoseconds = 0;
};

/// Thread-safe. One thread schedules and joins, another takes closures and reports how they ended.
///
/// Larger than most classes: one mutex guards the order of closures, the first error and the closures in
/// flight, because an error cancels queued closures and determines what join() throws. Priority queues,
/// waiting closures and results are separate classes.
class ClosureQueue final : public strategy::ClosureScheduler {
 public:
  /// put() blocks while `limit` closures are queued, unless `limit` is 0. put() and join() wait with
  /// `waiter`. The queue nudges it after every 64th closure, and when a closure arrives after a take() that
  /// found none, unless all workers are busy. `members` has the live workers.
  ClosureQueue(std::size_t limit, std::shared_ptr<Waiter> waiter, const cluster::Membership& members)
      : limit_(limit), board_(std::make_shared<ResultBoard>(std::move(waiter))), members_(members) {}

  using Clock = ClosureExtras::Clock;
  using Extras = std::unique_ptr<ClosureExtras>;

  /// Numbers closures for any worker from `next` on. REQUIRES: `next` is above all numbers so far, if any.
  void number_from(std::uint64_t next) override;
  /// Numbers closures for one worker from protocol::kForOneWorker + `next` on.
  void number_pinned_from(std::uint64_t next);
  /// Returns the number of the next closure for any worker. Lock-free.
  std::uint64_t next_id() const noexcept { return next_id_.load(std::memory_order_relaxed); }
  /// Returns how many closures of both kinds were scheduled since the last mark_recorded() or number_from().
  /// Lock-free.
  std::uint64_t since_recorded() const noexcept {
    const std::uint64_t recorded = recorded_.load(std::memory_order_acquire);
    return made_.load(std::memory_order_relaxed) - recorded;
  }
  /// Marks all closures so far as recorded: a restarted coordinator resumes after them.
  void mark_recorded() noexcept { recorded_ = made_.load(); }

  /// Blocks while the queue is full. Throws the stored error, as do join and done; Error(invalid_argument) if
  /// an argument is a result of another queue.
  std::shared_ptr<Result> put(std::uint32_t function, std::vector<std::byte> arguments, Extras extras = {},
                              detail::WorkerObjectRefs named = {});
  /// Blocks until all closures have ended; returns false if `timeout` passes first.
  bool join(std::optional<std::chrono::milliseconds> timeout);
  bool done();

  /// Returns the next closure for this worker and counts it as running; nullopt if there is none or an error
  /// is stored. If only closures that prefer another worker are left, an `idle` worker gets one of these.
  std::optional<Closure> take(int worker = kAnyWorker, bool idle = true);
  /// If `busy`, put() may leave closures in the queue without a nudge. As in Nagle's algorithm, the answer to
  /// a closure in flight is the latest time to take them; Waiter::nudge_soon() limits the delay. Reset to
  /// false before take(). Lock-free; for the thread that takes.
  void set_workers_busy(bool busy) noexcept { workers_busy_.store(busy, std::memory_order_relaxed); }
  void finish(const Closure& closure, std::vector<std::byte> result, Execution ran = {});
  /// Stores the error in the closure's result; put, join or done throws the first of several.
  void fail(const Closure& closure, Code code, const std::string& message, Execution ran = {});
  /// Queues a closure whose worker has died or returned it before all others, or cancels it if an error is
  /// stored.
  void put_back(Closure closure);
  /// Fails closures whose deadline has passed; returns true if there was one. A closure that is being
  /// executed no longer counts as running, and its result is dropped.
  bool expire(Clock::time_point now);
  /// Returns the number of the first closure that was scheduled after the last error, or 0 without an error.
  /// The error has cancelled all earlier closures that had not started. Lock-free.
  std::uint64_t revoked_before() const noexcept { return revoked_before_.load(std::memory_order_acquire); }
  /// Returns the next deadline of a closure; Clock::time_point::max() if there is none. Lock-free.
  Clock::time_point next_deadline() const noexcept {
    return Clock::time_point(Clock::duration(next_deadline_.load(std::memory_order_relaxed)));
  }
  bool wait_until(const std::function<bool()>& done, std::chrono::steady_clock::time_point deadline) override;
  /// Until release(), take() returns only closures that a dead worker may have started.
  void hold() override;
  void release() override;
  /// Called when no closure can run any more: ends every wait, and makes put, join and done throw.
  void break_down(Code code, const std::string& message);

  // Closures for one worker, which TensorFlow calls tagged closures. put, join and done neither count them
  // nor wait for them. Their errors are stored only in their results, and they run while an error is stored.

  /// Schedules a closure for one worker. Its result fails at once if the worker is not alive. Throws after
  /// break_down().
  std::shared_ptr<Result> put_for(int worker, std::uint32_t function, std::vector<std::byte> arguments,
                                  Extras extras = {}, detail::WorkerObjectRefs named = {});
  std::optional<Closure> take_for(int worker);
  /// Returns the workers for which take_for() has a closure, by index.
  std::vector<int> workers_with_closures() const;
  /// Fails the closures that are queued for this worker only; closures that prefer it become closures for any
  /// worker. REQUIRES: the worker is not alive.
  void fail_all_for(int worker);

  /// Returns true if no closure is queued, except those that wait for arguments.
  bool empty() const;
  bool broken() const noexcept { return board_->broken; }
  /// Returns true if the last take() left closures that prefer another worker. Lock-free; for the thread that
  /// takes.
  bool any_preferred() const noexcept { return any_preferred_.load(std::memory_order_relaxed); }
  CoordinatorStatistics statistics() const;

 private:
  using Lock = std::unique_lock<std::mutex>;
  void wait(Lock& lock, const std::function<bool()>& done);
  void set_next_deadline() noexcept;
  /// Returns true if the last take() found no closure, and a live worker holds fewer than two.
  bool wants_closure() const noexcept {
    return last_take_was_empty_ && !workers_busy_.load(std::memory_order_relaxed);
  }
  bool nothing_queued() const noexcept { return any_.empty() && preferred_.empty(); }
  std::size_t queued() const;
  Closure make(std::uint64_t id, std::uint32_t function, std::vector<std::byte> arguments, Extras extras);
  void check_inputs(const Extras& extras) const;
  bool admit(Closure closure);
  void enqueue(Closure closure);
  ClosurePriorityQueue* queue_for(int worker, bool idle);
  void settle(const Closure& closure, Result::State state, Code code, std::vector<std::byte> bytes);
  void settle_as_failed(const Closure& closure, Code code, const std::string& message);
  void cancel(const Closure& closure, Code code, const std::string& message);
  void fail_by_input(const Closure& closure);
  void store_error(const Closure& closure, Code code, const std::string& message);
  void release_dependents(const Result& result);
  void cancel_queued(Code code, const std::string& message);
  void raise_if_failed(Lock& lock);
  void settle_as_lost(const Closure& closure);
  bool stop_running(const Closure& closure);
  bool remove_unstarted(const Closure& closure);

  std::size_t limit_;
  std::shared_ptr<ResultBoard> board_;  // its mutex is the queue's, and is locked before the members'
  const cluster::Membership& members_;
  ClosurePriorityQueue any_;                       // for any worker
  std::map<int, ClosurePriorityQueue> preferred_;  // by worker; never an empty queue
  WaitingClosures waiting_;
  std::map<std::pair<Clock::time_point, std::uint64_t>, Closure> timed_;  // by deadline and id; no arguments
  std::unordered_map<std::uint64_t, Clock::time_point>
      arrival_times_;  // arrival times of sampled closures, by id
  std::atomic<Clock::rep> next_deadline_{Clock::time_point::max().time_since_epoch().count()};
  std::atomic<bool> any_preferred_{false};
  std::size_t running_ = 0;
  std::size_t queued_again_ = 0;  // closures in any_ that a dead worker may have started
  int held_ = 0;
  bool last_take_was_empty_ = true;  // the last take() found nothing
  bool collecting_ = false;          // put() has left a closure without a nudge since the last take()
  std::atomic<bool> workers_busy_{false};
  std::map<int, std::deque<Closure>> queued_for_one_;  // by worker
  std::atomic<std::uint64_t> next_id_{1};              // written under the mutex
  std::uint64_t next_for_one_ = protocol::kForOneWorker;
  std::atomic<std::uint64_t> made_{0};
  std::atomic<std::uint64_t> recorded_{0};  // of made_
  std::optional<Error> error_;
  std::atomic<std::uint64_t> revoked_before_{0};  // written under the mutex
  bool broken_ = false;
  CoordinatorStatistics statistics_;  // counters; statistics() adds the current sizes
};

}  // namespace capstan::coordinator
