// closure_queue.cpp -- one mutex, which no thread holds while it waits.
#include "coordinator/scheduling/closure_queue.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "base/deadline.hpp"

namespace capstan::coordinator {
namespace {

constexpr const char* kCancelled = "this function was cancelled by an earlier error; schedule it again";

/// The clock is read for every n-th closure only: this takes longer than all other work of scheduling it.
constexpr std::uint64_t kStampEvery = 32;

/// A thread that schedules closures sends them and receives results after every n-th one. This takes less
/// time than a message for each closure, or than waking up another thread, which would compete for the mutex.
constexpr std::uint64_t kNudgeEvery = 64;

}  // namespace

/// Unlocks the queue and waits until `done`, which is called under the mutex, returns true.
void ClosureQueue::wait(Lock& lock, const std::function<bool()>& done) {
  if (done()) return;
  lock.unlock();
  board_->waiter->wait(
      [&] {
        const std::lock_guard now(board_->mutex);
        return done();
      },
      std::nullopt);
  lock.lock();
}

std::size_t ClosureQueue::queued() const {
  std::size_t count = any_.size() + waiting_.for_any();
  for (const auto& [worker, queue] : preferred_) count += queue.size();
  return count;
}

void ClosureQueue::settle(const Closure& closure, Result::State state, Code code,
                          std::vector<std::byte> bytes) {
  if (closure.has_extras && closure.extras()->deadline) {
    timed_.erase({*closure.extras()->deadline, closure.id});
    set_next_deadline();
  }
  if (closure.has_extras) closure.extras()->inputs.clear();  // else a result keeps its chain of inputs alive
  closure.result->settle(state, code, std::move(bytes));
}

void ClosureQueue::settle_as_failed(const Closure& closure, Code code, const std::string& message) {
  const auto text = std::as_bytes(std::span(message));
  settle(closure, Result::State::failed, code, {text.begin(), text.end()});
}

void ClosureQueue::cancel(const Closure& closure, Code code, const std::string& message) {
  ++statistics_.cancelled;
  if (closure.stamped) arrival_times_.erase(closure.id);
  settle_as_failed(closure, code, message);
}

/// Also cancels closures that wait for arguments.
void ClosureQueue::cancel_queued(Code code, const std::string& message) {
  const auto cancel_it = [&](const Closure& closure) { cancel(closure, code, message); };
  any_.drain(cancel_it);
  queued_again_ = 0;
  for (auto& [worker, queue] : preferred_) queue.drain(cancel_it);
  preferred_.clear();
  for (const Closure& closure : waiting_.take_all()) cancel_it(closure);
}

/// If an error is stored, waits for running closures, cancels queued ones and throws the error once. Throws
/// the error of a breakdown on every call, without waiting.
void ClosureQueue::raise_if_failed(Lock& lock) {
  if (!error_) return;
  if (!broken_) wait(lock, [this] { return running_ == 0 || broken_; });
  if (broken_) throw *error_;
  cancel_queued(Code::cancelled, kCancelled);
  throw *std::exchange(error_, std::nullopt);
}

void ClosureQueue::check_inputs(const Extras& extras) const {
  if (!extras) return;
  for (const auto& input : extras->inputs) {
    if (input.result->board == board_) continue;
    throw Error(Code::invalid_argument, "an argument is the result of another coordinator's function");
  }
}

void ClosureQueue::number_from(std::uint64_t next) {
  const Lock lock(board_->mutex);
  next_id_.store(next, std::memory_order_relaxed);
  mark_recorded();
}

void ClosureQueue::number_pinned_from(std::uint64_t next) {
  const Lock lock(board_->mutex);
  next_for_one_ = protocol::kForOneWorker + next;
}

Closure ClosureQueue::make(std::uint64_t id, std::uint32_t function, std::vector<std::byte> arguments,
                           Extras extras) {
  made_.store(++statistics_.scheduled, std::memory_order_relaxed);
  const bool stamped = wants_closure() || id % kStampEvery == 0;
  if (stamped) arrival_times_.emplace(id, Clock::now());
  return {
      id,      function,          kAnyWorker,           false,
      stamped, extras != nullptr, std::move(arguments), std::make_shared<Result>(board_, std::move(extras))};
}

/// Queues the closure, makes it wait for its arguments or, if one has failed, fails it. Returns true if its
/// deadline is the earliest of all.
bool ClosureQueue::admit(Closure closure) {
  bool first = false;
  if (closure.has_extras && closure.extras()->deadline) {
    const auto location =
        timed_
            .try_emplace({*closure.extras()->deadline, closure.id}, Closure{.id = closure.id,
                                                                            .worker = closure.worker,
                                                                            .stamped = closure.stamped,
                                                                            .has_extras = true,
                                                                            .arguments = {},
                                                                            .result = closure.result})
            .first;
    first = location == timed_.begin();
    set_next_deadline();
  }
  if (closure.failed_input() != nullptr) {
    fail_by_input(closure);
  } else if (!closure.ready()) {
    waiting_.add(std::move(closure));
  } else {
    enqueue(std::move(closure));
  }
  return first;
}

/// Inserts by id, since the closure may have waited for its arguments. REQUIRES: they are ready.
void ClosureQueue::enqueue(Closure closure) {
  if (closure.worker != kAnyWorker) {
    if (members_.worker_is_alive(closure.worker)) {
      queued_for_one_[closure.worker].push_back(std::move(closure));
    } else {
      settle_as_lost(closure);
    }
    return;
  }
  const int preferred = closure.has_extras ? closure.extras()->affinity : kAnyWorker;
  if (preferred != kAnyWorker && members_.worker_is_alive(preferred)) {
    preferred_[preferred].push_by_id(std::move(closure));
  } else if (closure.has_extras) {
    any_.push_by_id(std::move(closure));
  } else {
    any_.push_back(std::move(closure));
  }
}

/// Fails a closure that has not run with the error of its argument, and counts this as the closure's error.
void ClosureQueue::fail_by_input(const Closure& closure) {
  const Result& input = *closure.failed_input();
  const std::string message(reinterpret_cast<const char*>(input.bytes.data()), input.bytes.size());
  ++statistics_.failed;
  if (closure.stamped) arrival_times_.erase(closure.id);
  settle_as_failed(closure, input.code, message);
  store_error(closure, input.code, message);
}

/// Keeps the first error until it is thrown. An error of a closure for one worker is only in its result.
void ClosureQueue::store_error(const Closure& closure, Code code, const std::string& message) {
  if (error_ || closure.worker != kAnyWorker) return;
  error_ = Error(code, message);
  revoked_before_.store(next_id(), std::memory_order_release);  // put() throws until it has been raised
}

/// Queues the closures that waited for the result. If it is an error, fails them instead, and in turn all
/// closures that waited for theirs.
void ClosureQueue::release_dependents(const Result& result) {
  if (!result.awaited) return;
  std::vector<std::shared_ptr<Result>> failed;
  const auto release = [&](const Result& ended) {
    for (Closure& closure : waiting_.release(ended)) {
      if (closure.failed_input() == nullptr) {
        enqueue(std::move(closure));
      } else {
        fail_by_input(closure);
        if (closure.result->awaited) failed.push_back(closure.result);
      }
    }
  };
  release(result);
  while (!failed.empty()) {
    const auto next = std::move(failed.back());
    failed.pop_back();
    release(*next);
  }
}

std::shared_ptr<Result> ClosureQueue::put(std::uint32_t function, std::vector<std::byte> arguments,
                                          Extras extras, detail::WorkerObjectRefs named) {
  check_inputs(extras);
  Lock lock(board_->mutex);
  wait(lock, [this] { return error_ || limit_ == 0 || queued() < limit_; });
  raise_if_failed(lock);
  const std::uint64_t id = next_id();
  next_id_.store(id + 1, std::memory_order_relaxed);
  Closure closure = make(id, function, std::move(arguments), std::move(extras));
  closure.named = std::move(named);
  auto result = closure.result;
  bool sooner = false;
  if (closure.has_extras) {
    sooner = admit(std::move(closure));
  } else {
    any_.push_back(std::move(closure));
  }
  // The dispatcher must also run after the error of an argument, to revoke closures that workers hold.
  const bool hungry = wants_closure() || error_;
  if (hungry) last_take_was_empty_ = false;
  const bool due = id % kNudgeEvery == 0;
  const bool collects = last_take_was_empty_ && !std::exchange(collecting_, true);
  lock.unlock();
  if (sooner) {
    board_->waiter->nudge_sleeper();
  } else if (hungry || due) {
    board_->waiter->nudge();
  } else if (collects) {
    board_->waiter->nudge_soon();
  }
  return result;
}

std::shared_ptr<Result> ClosureQueue::put_for(int worker, std::uint32_t function,
                                              std::vector<std::byte> arguments, Extras extras,
                                              detail::WorkerObjectRefs named) {
  check_inputs(extras);
  std::shared_ptr<Result> result;
  {
    const Lock lock(board_->mutex);
    if (broken_) throw *error_;
    Closure closure = make(next_for_one_++, function, std::move(arguments), std::move(extras));
    closure.worker = worker;
    closure.named = std::move(named);
    result = closure.result;
    admit(std::move(closure));
  }
  board_->waiter->nudge();
  return result;
}

std::optional<Closure> ClosureQueue::take_for(int worker) {
  const Lock lock(board_->mutex);
  const auto found = queued_for_one_.find(worker);
  if (found == queued_for_one_.end()) return std::nullopt;
  Closure closure = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) queued_for_one_.erase(found);
  if (closure.stamped) arrival_times_.erase(closure.id);
  return closure;
}

std::vector<int> ClosureQueue::workers_with_closures() const {
  const Lock lock(board_->mutex);
  std::vector<int> workers;
  for (const auto& [worker, closures] : queued_for_one_) workers.push_back(worker);
  return workers;
}

void ClosureQueue::settle_as_lost(const Closure& closure) {
  ++statistics_.failed;
  if (closure.stamped) arrival_times_.erase(closure.id);
  settle_as_failed(
      closure, Code::aborted,
      "worker " + std::to_string(closure.worker) + " has ended, and this function was for it alone");
  release_dependents(*closure.result);
}

void ClosureQueue::fail_all_for(int worker) {
  const Lock lock(board_->mutex);
  if (auto preferred = preferred_.extract(worker); !preferred.empty()) {
    preferred.mapped().drain([this](Closure closure) { any_.push_by_id(std::move(closure)); });
  }
  auto queued = queued_for_one_.extract(worker);
  if (queued.empty()) return;
  for (const Closure& closure : queued.mapped()) settle_as_lost(closure);
}

bool ClosureQueue::join(std::optional<std::chrono::milliseconds> timeout) {
  // After an error, the timeout also limits the wait for running closures.
  const auto settled = [this] {
    const Lock lock(board_->mutex);
    return broken_ || ((error_ || queued() == 0) && running_ == 0);
  };
  std::optional<Waiter::Deadline> deadline;
  if (timeout) deadline = deadline_after(*timeout);
  if (!settled() && !board_->waiter->wait(settled, deadline)) return false;
  Lock lock(board_->mutex);
  raise_if_failed(lock);
  return true;
}

bool ClosureQueue::done() {
  Lock lock(board_->mutex);
  raise_if_failed(lock);
  return queued() == 0 && running_ == 0;
}

/// Returns the queue from which this worker takes its next closure: of closures for any worker or of closures
/// that prefer this one, whichever comes first. If both are empty, an idle worker takes from the longest
/// queue of closures that prefer another worker. Returns null if the worker gets no closure.
ClosurePriorityQueue* ClosureQueue::queue_for(int worker, bool idle) {
  const auto own = preferred_.find(worker);
  if (own != preferred_.end()) {
    const Closure& mine = own->second.front();
    const Closure* other = any_.empty() ? nullptr : &any_.front();
    const bool after =
        other != nullptr &&
        (mine.priority() != other->priority() ? mine.priority() < other->priority() : mine.id > other->id);
    return after ? &any_ : &own->second;
  }
  if (!any_.empty()) return &any_;
  if (!idle || preferred_.empty()) return nullptr;
  const auto longest =
      std::max_element(preferred_.begin(), preferred_.end(),
                       [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  return &longest->second;
}

std::optional<Closure> ClosureQueue::take(int worker, bool idle) {
  const Lock lock(board_->mutex);
  const bool nothing = error_ || nothing_queued() || (held_ > 0 && queued_again_ == 0);
  ClosurePriorityQueue* queue = nothing ? nullptr : queue_for(worker, idle);
  last_take_was_empty_ = queue == nullptr;
  collecting_ = false;
  any_preferred_.store(last_take_was_empty_ && !error_ && !preferred_.empty(), std::memory_order_relaxed);
  if (last_take_was_empty_) return std::nullopt;
  Closure closure = queue->pop();
  if (closure.again && queue == &any_) --queued_again_;
  if (queue != &any_ && queue->empty()) {
    std::erase_if(preferred_, [](const auto& entry) { return entry.second.empty(); });
  }
  if (closure.stamped) {
    if (const auto came = arrival_times_.extract(closure.id)) {
      const auto queued = std::chrono::nanoseconds(Clock::now() - came.mapped()).count();
      statistics_.queueing.add(static_cast<std::uint64_t>(queued));
    }
  }
  ++running_;
  return closure;
}

/// Stops counting the closure as running. Returns false if expire() did so before.
bool ClosureQueue::stop_running(const Closure& closure) {
  if (closure.has_extras && closure.extras()->expired) return false;
  if (closure.worker == kAnyWorker) --running_;
  return true;
}

void ClosureQueue::finish(const Closure& closure, std::vector<std::byte> bytes, Execution ran) {
  const Lock lock(board_->mutex);
  statistics_.execution.add(ran.nanoseconds);
  if (!stop_running(closure) || broken_) return;
  ++statistics_.finished;
  closure.result->producer = static_cast<std::int16_t>(ran.worker);
  settle(closure, Result::State::ready, Code::ok, std::move(bytes));
  release_dependents(*closure.result);
}

void ClosureQueue::fail(const Closure& closure, Code code, const std::string& message, Execution ran) {
  const Lock lock(board_->mutex);
  statistics_.execution.add(ran.nanoseconds);
  if (!stop_running(closure) || broken_) return;
  ++statistics_.failed;
  settle_as_failed(closure, code, message);
  store_error(closure, code, message);
  release_dependents(*closure.result);
}

void ClosureQueue::put_back(Closure closure) {
  const Lock lock(board_->mutex);
  if (!stop_running(closure) || broken_) return;
  if (closure.worker != kAnyWorker) {
    settle_as_lost(closure);
  } else if (error_) {
    cancel(closure, Code::cancelled, kCancelled);
    release_dependents(*closure.result);
  } else {
    ++statistics_.moved;
    if (closure.again) ++queued_again_;
    any_.push_front(std::move(closure));
  }
}

bool ClosureQueue::wait_until(const std::function<bool()>& done,
                              std::chrono::steady_clock::time_point deadline) {
  return board_->waiter->wait(done, deadline);
}

void ClosureQueue::hold() {
  Lock lock(board_->mutex);
  ++held_;
  wait(lock, [this] { return broken_ || (running_ == 0 && (error_ || queued_again_ == 0)); });
  if (!error_) return;
  --held_;
  raise_if_failed(lock);
}

void ClosureQueue::release() {
  {
    const Lock lock(board_->mutex);
    --held_;
  }
  board_->waiter->nudge();
}

bool ClosureQueue::expire(Clock::time_point now) {
  const Lock lock(board_->mutex);
  bool any = false;
  while (!broken_ && !timed_.empty() && timed_.begin()->first.first <= now) {
    const Closure closure = std::move(timed_.extract(timed_.begin()).mapped());
    any = true;
    const bool begun = !remove_unstarted(closure);
    if (begun) {
      stop_running(closure);
      closure.extras()->expired = true;
    }
    const std::string message = begun ? "a function had not ended at its deadline"
                                      : "the deadline of a function expired before it started";
    if (closure.stamped) arrival_times_.erase(closure.id);
    ++statistics_.failed;
    ++statistics_.deadlines_exceeded;
    settle_as_failed(closure, Code::deadline_exceeded, message);
    store_error(closure, Code::deadline_exceeded, message);
    release_dependents(*closure.result);
  }
  return any;
}

/// Removes a closure that is queued or waits for arguments; returns false if it is neither.
bool ClosureQueue::remove_unstarted(const Closure& closure) {
  if (waiting_.remove(closure.id)) return true;
  if (closure.worker != kAnyWorker) {
    const auto found = queued_for_one_.find(closure.worker);
    if (found == queued_for_one_.end()) return false;
    const bool was_there =
        std::erase_if(found->second, [&](const Closure& other) { return other.id == closure.id; }) > 0;
    if (found->second.empty()) queued_for_one_.erase(found);
    return was_there;
  }
  if (const auto queued = any_.remove(closure.id, closure.priority())) {
    if (queued->again) --queued_again_;
    return true;
  }
  const auto found = std::find_if(preferred_.begin(), preferred_.end(), [&](auto& entry) {
    return entry.second.remove(closure.id, closure.priority()).has_value();
  });
  if (found == preferred_.end()) return false;
  if (found->second.empty()) preferred_.erase(found);
  return true;
}

void ClosureQueue::set_next_deadline() noexcept {
  const auto next = timed_.empty() ? Clock::time_point::max() : timed_.begin()->first.first;
  next_deadline_.store(next.time_since_epoch().count(), std::memory_order_relaxed);
}

/// Running closures stay pending; fetches of their results find the error on the board.
void ClosureQueue::break_down(Code code, const std::string& message) {
  {
    const Lock lock(board_->mutex);
    if (broken_) return;
    broken_ = true;
    error_ = Error(code, message);
    cancel_queued(code, message);
    for (const auto& [worker, closures] : queued_for_one_) {
      for (const Closure& closure : closures) cancel(closure, code, message);
    }
    queued_for_one_.clear();
    board_->breakdown = error_;
    board_->broken = true;
  }
}

bool ClosureQueue::empty() const {
  const Lock lock(board_->mutex);
  return nothing_queued();
}

CoordinatorStatistics ClosureQueue::statistics() const {
  const Lock lock(board_->mutex);
  CoordinatorStatistics out = statistics_;
  out.waiting = waiting_.size();
  out.queued = queued() - waiting_.for_any();
  for (const auto& [worker, closures] : queued_for_one_) out.queued += closures.size();
  out.running = running_;
  out.fetch = board_->fetches.read();
  return out;
}

}  // namespace capstan::coordinator
