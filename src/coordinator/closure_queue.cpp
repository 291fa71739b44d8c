// closure_queue.cpp -- one mutex for the queue and all results: closures are large against a lock.
#include "coordinator/closure_queue.hpp"

#include <utility>

namespace capstan::coordinator {
namespace {

constexpr const char* kCancelled = "this function was cancelled by an earlier error; schedule it again";

}  // namespace

void ClosureQueue::settle(Result& result, Code code, const std::string& message) {
  if (result.state != Result::State::pending) return;
  result.state = Result::State::failed;
  result.code = code;
  result.message = message;
}

void ClosureQueue::cancel_queued(Code code, const std::string& message) {
  for (const Closure& closure : queued_) settle(*closure.result, code, message);
  queued_.clear();
}

/// Awaits what runs, cancels what is queued, raises once. A breakdown is raised every time and awaits
/// nothing.
void ClosureQueue::raise_if_failed(Lock& lock) {
  if (!error_) return;
  if (broken_) throw *error_;
  changed_->wait(lock, [this] { return running_.empty() || broken_; });
  if (broken_) throw *error_;
  cancel_queued(Code::cancelled, kCancelled);
  const Error error = *std::exchange(error_, std::nullopt);
  changed_->notify_all();
  throw error;
}

std::shared_ptr<Result> ClosureQueue::put(std::uint32_t function, std::vector<std::byte> arguments) {
  Lock lock(*mutex_);
  changed_->wait(lock, [this] { return error_ || limit_ == 0 || queued_.size() < limit_; });
  raise_if_failed(lock);
  auto result = new_result();
  queued_.push_back({next_id_++, function, std::move(arguments), result});
  return result;
}

std::shared_ptr<Result> ClosureQueue::new_result() const {
  auto result = std::make_shared<Result>();
  result->mutex = mutex_;
  result->changed = changed_;
  return result;
}

std::shared_ptr<Result> ClosureQueue::put_for(int worker, std::uint32_t function,
                                              std::vector<std::byte> arguments) {
  const Lock lock(*mutex_);
  if (broken_) throw *error_;
  Closure closure{next_id_++, function, std::move(arguments), new_result(), worker};
  auto result = closure.result;
  if (lost_.contains(worker)) {
    settle_as_lost(closure);
  } else {
    queued_for_one_[worker].push_back(std::move(closure));
  }
  return result;
}

std::optional<Closure> ClosureQueue::take_for(int worker) {
  const Lock lock(*mutex_);
  const auto found = queued_for_one_.find(worker);
  if (found == queued_for_one_.end()) return std::nullopt;
  Closure closure = std::move(found->second.front());
  found->second.pop_front();
  if (found->second.empty()) queued_for_one_.erase(found);
  running_for_one_[closure.id] = closure.result;
  return closure;
}

bool ClosureQueue::any_for_one() const {
  const Lock lock(*mutex_);
  return !queued_for_one_.empty();
}

void ClosureQueue::settle_as_lost(const Closure& closure) {
  settle(*closure.result, Code::aborted,
         "worker " + std::to_string(closure.worker) + " is gone, and this function was for it alone");
}

void ClosureQueue::lose(int worker) {
  const Lock lock(*mutex_);
  lost_.insert(worker);
  const auto found = queued_for_one_.find(worker);
  if (found == queued_for_one_.end()) return;
  for (const Closure& closure : found->second) settle_as_lost(closure);
  queued_for_one_.erase(found);
  changed_->notify_all();
}

bool ClosureQueue::lost(int worker) const {
  const Lock lock(*mutex_);
  return lost_.contains(worker);
}

bool ClosureQueue::join(std::optional<std::chrono::milliseconds> timeout) {
  Lock lock(*mutex_);
  // After an error what runs is awaited as well, and within the same time.
  const auto settled = [this] { return broken_ || ((error_ || queued_.empty()) && running_.empty()); };
  if (timeout) {
    if (!changed_->wait_for(lock, *timeout, settled)) return false;
  } else {
    changed_->wait(lock, settled);
  }
  raise_if_failed(lock);
  return true;
}

bool ClosureQueue::done() {
  Lock lock(*mutex_);
  raise_if_failed(lock);
  return queued_.empty() && running_.empty();
}

std::optional<Closure> ClosureQueue::take() {
  const Lock lock(*mutex_);
  if (error_ || queued_.empty()) return std::nullopt;
  Closure closure = std::move(queued_.front());
  queued_.pop_front();
  running_[closure.id] = closure.result;
  changed_->notify_all();
  return closure;
}

void ClosureQueue::finish(const Closure& closure, std::vector<std::byte> bytes) {
  const Lock lock(*mutex_);
  running_.erase(closure.id);
  running_for_one_.erase(closure.id);
  if (closure.result->state == Result::State::pending) {
    closure.result->state = Result::State::ready;
    closure.result->bytes = std::move(bytes);
  }
  changed_->notify_all();
}

void ClosureQueue::fail(const Closure& closure, Code code, const std::string& message) {
  const Lock lock(*mutex_);
  running_.erase(closure.id);
  running_for_one_.erase(closure.id);
  settle(*closure.result, code, message);
  if (!error_ && closure.worker == kAnyWorker) error_ = Error(code, message);
  changed_->notify_all();
}

void ClosureQueue::put_back(Closure closure) {
  const Lock lock(*mutex_);
  running_.erase(closure.id);
  running_for_one_.erase(closure.id);
  if (closure.worker != kAnyWorker) {
    settle_as_lost(closure);
  } else if (error_) {
    settle(*closure.result, Code::cancelled, kCancelled);
  } else {
    queued_.push_front(std::move(closure));
  }
  changed_->notify_all();
}

void ClosureQueue::break_down(Code code, const std::string& message) {
  const Lock lock(*mutex_);
  if (broken_) return;
  broken_ = true;
  error_ = Error(code, message);
  cancel_queued(code, message);
  for (const auto& [worker, closures] : queued_for_one_) {
    for (const Closure& closure : closures) settle(*closure.result, code, message);
  }
  queued_for_one_.clear();
  for (auto* running : {&running_, &running_for_one_}) {
    for (const auto& [id, result] : *running) settle(*result, code, message);
    running->clear();
  }
  changed_->notify_all();
}

bool ClosureQueue::empty() const {
  const Lock lock(*mutex_);
  return queued_.empty();
}

}  // namespace capstan::coordinator
