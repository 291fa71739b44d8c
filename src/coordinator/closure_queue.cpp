// closure_queue.cpp -- one mutex, held for a moment at a time: nobody waits with it.
#include "coordinator/closure_queue.hpp"

#include <span>
#include <utility>

namespace capstan::coordinator {
namespace {

constexpr const char* kCancelled = "this function was cancelled by an earlier error; schedule it again";

void settle_as_failed(Result& result, Code code, const std::string& message) {
  const auto text = std::as_bytes(std::span(message));
  result.settle(Result::State::failed, code, {text.begin(), text.end()});
}

}  // namespace

/// Gives the queue free until `done`, which is called under the mutex.
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

void ClosureQueue::cancel_queued(Code code, const std::string& message) {
  for (const Closure& closure : queued_) settle_as_failed(*closure.result, code, message);
  queued_.clear();
}

/// Awaits what runs, cancels what is queued, raises once. A breakdown is raised every time and awaits
/// nothing.
void ClosureQueue::raise_if_failed(Lock& lock) {
  if (!error_) return;
  if (!broken_) wait(lock, [this] { return running_ == 0 || broken_; });
  if (broken_) throw *error_;
  cancel_queued(Code::cancelled, kCancelled);
  throw *std::exchange(error_, std::nullopt);
}

std::shared_ptr<Result> ClosureQueue::put(std::uint32_t function, std::vector<std::byte> arguments) {
  auto result = std::make_shared<Result>(board_);
  Lock lock(board_->mutex);
  wait(lock, [this] { return error_ || limit_ == 0 || queued_.size() < limit_; });
  raise_if_failed(lock);
  queued_.push_back({next_id_++, function, kAnyWorker, false, std::move(arguments), result});
  const bool hungry = std::exchange(hungry_, false);
  lock.unlock();
  if (hungry) board_->waiter->nudge();
  return result;
}

std::shared_ptr<Result> ClosureQueue::put_for(int worker, std::uint32_t function,
                                              std::vector<std::byte> arguments) {
  auto result = std::make_shared<Result>(board_);
  {
    const Lock lock(board_->mutex);
    if (broken_) throw *error_;
    Closure closure{next_id_++, function, worker, false, std::move(arguments), result};
    if (lost_.contains(worker)) {
      settle_as_lost(closure);
    } else {
      queued_for_one_[worker].push_back(std::move(closure));
    }
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
  return closure;
}

bool ClosureQueue::any_for_one() const {
  const Lock lock(board_->mutex);
  return !queued_for_one_.empty();
}

void ClosureQueue::settle_as_lost(const Closure& closure) {
  settle_as_failed(
      *closure.result, Code::aborted,
      "worker " + std::to_string(closure.worker) + " is gone, and this function was for it alone");
}

void ClosureQueue::lose(int worker) {
  const Lock lock(board_->mutex);
  lost_.insert(worker);
  have_been_lost_.insert(worker);
  const auto found = queued_for_one_.find(worker);
  if (found == queued_for_one_.end()) return;
  for (const Closure& closure : found->second) settle_as_lost(closure);
  queued_for_one_.erase(found);
}

void ClosureQueue::regain(int worker) {
  const Lock lock(board_->mutex);
  lost_.erase(worker);
}

bool ClosureQueue::lost(int worker) const {
  const Lock lock(board_->mutex);
  return lost_.contains(worker);
}

bool ClosureQueue::has_been_lost(int worker) const {
  const Lock lock(board_->mutex);
  return have_been_lost_.contains(worker);
}

bool ClosureQueue::join(std::optional<std::chrono::milliseconds> timeout) {
  // After an error what runs is awaited as well, and within the same time.
  const auto settled = [this] {
    const Lock lock(board_->mutex);
    return broken_ || ((error_ || queued_.empty()) && running_ == 0);
  };
  std::optional<Waiter::Deadline> deadline;
  if (timeout) deadline = std::chrono::steady_clock::now() + *timeout;
  if (!settled() && !board_->waiter->wait(settled, deadline)) return false;
  Lock lock(board_->mutex);
  raise_if_failed(lock);
  return true;
}

bool ClosureQueue::done() {
  Lock lock(board_->mutex);
  raise_if_failed(lock);
  return queued_.empty() && running_ == 0;
}

std::optional<Closure> ClosureQueue::take() {
  const Lock lock(board_->mutex);
  hungry_ = error_ || queued_.empty();
  if (hungry_) return std::nullopt;
  Closure closure = std::move(queued_.front());
  queued_.pop_front();
  ++running_;
  return closure;
}

void ClosureQueue::stop_running(const Closure& closure) {
  if (closure.worker == kAnyWorker) --running_;
}

void ClosureQueue::finish(const Closure& closure, std::vector<std::byte> bytes) {
  const Lock lock(board_->mutex);
  stop_running(closure);
  if (!broken_) closure.result->settle(Result::State::ready, Code::ok, std::move(bytes));
}

void ClosureQueue::fail(const Closure& closure, Code code, const std::string& message) {
  const Lock lock(board_->mutex);
  stop_running(closure);
  if (broken_) return;
  settle_as_failed(*closure.result, code, message);
  if (!error_ && closure.worker == kAnyWorker) error_ = Error(code, message);
}

void ClosureQueue::put_back(Closure closure) {
  const Lock lock(board_->mutex);
  stop_running(closure);
  if (broken_) return;
  if (closure.worker != kAnyWorker) {
    settle_as_lost(closure);
  } else if (error_) {
    settle_as_failed(*closure.result, Code::cancelled, kCancelled);
  } else {
    queued_.push_front(std::move(closure));
  }
}

/// What runs stays pending, and who asks for it finds the breakdown on the board.
void ClosureQueue::break_down(Code code, const std::string& message) {
  {
    const Lock lock(board_->mutex);
    if (broken_) return;
    broken_ = true;
    error_ = Error(code, message);
    cancel_queued(code, message);
    for (const auto& [worker, closures] : queued_for_one_) {
      for (const Closure& closure : closures) settle_as_failed(*closure.result, code, message);
    }
    queued_for_one_.clear();
    board_->breakdown = error_;
    board_->broken = true;
  }
}

bool ClosureQueue::empty() const {
  const Lock lock(board_->mutex);
  return queued_.empty();
}

}  // namespace capstan::coordinator
