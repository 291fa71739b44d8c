// replica_rendezvous.cpp -- the last replica to arrive combines the values while the others sleep.
#include "strategy/replica_rendezvous.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"

namespace capstan::strategy {

std::string name_replicas(const std::vector<int>& replicas) {
  return fmt::format("replica{} {}", replicas.size() == 1 ? "" : "s", fmt::join(replicas, ", "));
}

ReplicaRendezvous::ReplicaRendezvous(int replicas, std::chrono::milliseconds timeout,
                                     std::function<void(bool)> combining)
    : size_(replicas),
      timeout_(timeout),
      combining_(std::move(combining)),
      states_(static_cast<std::size_t>(replicas)),
      aborted_(static_cast<std::size_t>(replicas)),
      calls_(static_cast<std::size_t>(replicas)) {}

void ReplicaRendezvous::begin() {
  const std::lock_guard lock(mutex_);
  std::fill(states_.begin(), states_.end(), State::running);
  std::fill(aborted_.begin(), aborted_.end(), false);
  broken_ = false;
}

void ReplicaRendezvous::leave(int replica, bool failed) {
  const std::lock_guard lock(mutex_);
  states_[static_cast<std::size_t>(replica)] = failed ? State::failed : State::returned;
  changed_.notify_all();
}

void ReplicaRendezvous::end() {
  const std::lock_guard lock(mutex_);
  result_ = nullptr;
  failure_ = nullptr;
}

std::vector<int> ReplicaRendezvous::running() const {
  const std::lock_guard lock(mutex_);
  return select([this](int replica) { return state(replica) == State::running; });
}

bool ReplicaRendezvous::was_aborted(int replica) const {
  const std::lock_guard lock(mutex_);
  return aborted_[static_cast<std::size_t>(replica)];
}

std::vector<int> ReplicaRendezvous::select(const std::function<bool(int)>& condition) const {
  std::vector<int> replicas;
  for (int replica = 0; replica < size_; ++replica) {
    if (condition(replica)) replicas.push_back(replica);
  }
  return replicas;
}

/// Throws if another replica has failed or ended, and therefore will not arrive.
void ReplicaRendezvous::require_all_present(int replica, const std::string& call) {
  const auto have = [](const std::vector<int>& replicas) { return replicas.size() == 1 ? "has" : "have"; };
  // Replicas that were aborted because another one had failed are not the cause.
  const auto failed = select([this](int other) {
    return state(other) == State::failed && !aborted_[static_cast<std::size_t>(other)];
  });
  if (!failed.empty() || broken_) {
    aborted_[static_cast<std::size_t>(replica)] = true;
    throw Error(Code::aborted, fmt::format("replica {} cannot continue in {}: {}", replica, call,
                                           failed.empty() ? "the replicas are out of step"
                                                          : fmt::format("{} {} failed", name_replicas(failed),
                                                                        have(failed))));
  }
  const auto returned = select([this](int other) { return state(other) == State::returned; });
  if (!returned.empty()) {
    broken_ = true;
    throw Error(
        Code::failed_precondition,
        fmt::format("replica {} waits in {} for {}, which {} returned without this call; every replica "
                    "must make the same calls",
                    replica, call, name_replicas(returned), have(returned)));
  }
}

std::shared_ptr<const void> ReplicaRendezvous::run_collective(int replica, const detail::Collective& call) {
  if (size_ == 1) {
    const void* const value = call.value;
    return call.combine({&value, 1});
  }
  std::unique_lock lock(mutex_);
  require_all_present(replica, call.name);
  calls_[static_cast<std::size_t>(replica)] = &call;
  const bool last = ++arrived_ == size_;
  if (last) {
    combine(lock);
  } else {
    wait_for_others(replica, call, lock);
  }
  if (failure_) throw_failure(last);
  return result_;
}

void ReplicaRendezvous::wait_for_others(int replica, const detail::Collective& call,
                                        std::unique_lock<std::mutex>& lock) {
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  const std::uint64_t round = round_;
  try {
    while (round_ == round) {
      // While the values are combined, no replica may leave, since its value is in use.
      if (arrived_ == size_) {
        if (changed_.wait_for(lock, timeout_) == std::cv_status::timeout && round_ == round) {
          log::warn("replica {} still waits in {} for the combination of the values", replica, call.name);
        }
        continue;
      }
      require_all_present(replica, call.name);
      // Only the first replica that times out reports the missing ones. It then leaves, so the others would
      // report it as missing, too; they are aborted instead.
      if (changed_.wait_until(lock, deadline) == std::cv_status::timeout && round_ == round &&
          arrived_ < size_ && !broken_) {
        broken_ = true;
        const auto missing =
            select([this](int other) { return calls_[static_cast<std::size_t>(other)] == nullptr; });
        throw Error(Code::deadline_exceeded,
                    fmt::format("replica {} has waited {} ms in {} for {}", replica, timeout_.count(),
                                call.name, name_replicas(missing)));
      }
    }
  } catch (const Error&) {
    calls_[static_cast<std::size_t>(replica)] = nullptr;
    --arrived_;
    changed_.notify_all();  // the others must stop waiting for this replica
    throw;
  }
}

/// Rethrows the exception of the combination. If it is an Error, every replica except the one that combined
/// throws a copy, so that threads do not share one exception object.
void ReplicaRendezvous::throw_failure(bool combined_here) const {
  try {
    std::rethrow_exception(failure_);
  } catch (const Error& error) {
    if (combined_here) throw;
    throw Error(error.code(), error.what(), error.where());
  }
}

/// Called by the last replica. The others sleep, so the combination may use everything that they use.
void ReplicaRendezvous::combine(std::unique_lock<std::mutex>& lock) {
  std::vector<const void*> values;
  for (const detail::Collective* call : calls_) values.push_back(call->value);
  const auto other = std::find_if(calls_.begin(), calls_.end(), [this](const detail::Collective* call) {
    return call->name != calls_[0]->name || call->type != calls_[0]->type;
  });
  std::shared_ptr<const void> result;
  std::exception_ptr failure;
  if (other != calls_.end()) {
    broken_ = true;
    const bool same_name = (*other)->name == calls_[0]->name;
    failure = std::make_exception_ptr(Error(
        Code::failed_precondition,
        fmt::format("replica {} calls {} where replica 0 calls {}{}; every replica must make the same calls",
                    other - calls_.begin(), (*other)->name, calls_[0]->name,
                    same_name ? " with a value of another type" : "")));
  } else {
    lock.unlock();
    combining_(true);
    try {
      result = calls_[0]->combine(values);
    } catch (...) {
      failure = std::current_exception();
    }
    combining_(false);
    lock.lock();
  }
  std::fill(calls_.begin(), calls_.end(), nullptr);
  arrived_ = 0;
  result_ = std::move(result);
  failure_ = std::move(failure);
  ++round_;
  changed_.notify_all();
}

}  // namespace capstan::strategy
