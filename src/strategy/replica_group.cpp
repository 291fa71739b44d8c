// replica_group.cpp -- threads that wait for the next run, and replicas that wait for each other.
#include "strategy/replica_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/cancellation_request.hpp"
#include "base/log.hpp"
#include "capstan/strategy.hpp"
#include "gpu/real_gpu.hpp"
#include "strategy/context.hpp"
#include "strategy/current_replica.hpp"

namespace capstan::strategy {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

std::string list(const std::vector<int>& replicas) {
  return fmt::format("replica{} {}", replicas.size() == 1 ? "" : "s", fmt::join(replicas, ", "));
}

}  // namespace

ReplicaGroup::ReplicaGroup(Context& context)
    : context_(context),
      size_(static_cast<int>(context.client().runtime().settings().integer("replicas"))),
      timeout_(context.client().runtime().wait_timeout()),
      on_coordinator_(context.client().runtime().self().role == Role::coordinator),
      wants_gpus_(context.client().runtime().settings().text("replica-device") == "gpu"),
      states_(static_cast<std::size_t>(size_)),
      errors_(static_cast<std::size_t>(size_)),
      told_(static_cast<std::size_t>(size_)),
      calls_(static_cast<std::size_t>(size_)) {
  // A coordinator's host need not have any, unless its process is a worker's as well.
  const cluster::Runtime& runtime = context_.runtime();
  const bool is_worker = runtime.self().role == Role::worker || runtime.in_process();
  if (wants_gpus_ && is_worker) gpus_.emplace(runtime, size_);
}

ReplicaGroup::~ReplicaGroup() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void ReplicaGroup::warn_unless_scheduled(const std::string& call) {
  if (!on_coordinator_ || allowed_ || active_.load(kRelaxed) || !warned_.insert(call).second) return;
  log::warn(
      "{}: a ParameterServerStrategy method is invoked without using ClusterCoordinator.schedule, so it runs "
      "on "
      "the coordinator, which can be slow. Call it in a function that is scheduled, on get_replicas()",
      call);
}

void ReplicaGroup::run(const std::function<void(ReplicaContext&)>& body) {
  if (current_replica() != nullptr || active_.load(kRelaxed)) {
    throw Error(Code::failed_precondition,
                "run is called inside of run: a replica cannot start replicas; call the function directly");
  }
  get_gpus_ready();
  if (threads_.empty()) start_threads();
  active_.store(true, kRelaxed);
  const bool was_shared = context_.shared();  // variables outside of scopes: always
  context_.share(was_shared || size_ > 1);
  {
    const std::lock_guard lock(mutex_);
    cancellation_ = current_cancellation();
    std::fill(states_.begin(), states_.end(), State::running);
    std::fill(errors_.begin(), errors_.end(), nullptr);
    std::fill(told_.begin(), told_.end(), false);
    broken_ = false;
    body_ = &body;
    running_ = size_;
    ++round_;
  }
  start_.notify_all();
  work(0);
  {
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, timeout_, [this] { return running_ == 0; })) {
      log::warn("run: every replica is awaited, and {} has not ended",
                list(replicas_not([this](int replica) { return state(replica) != State::running; })));
    }
  }
  context_.share(was_shared);
  const std::exception_ptr of_gpus = await_gpus();
  result_ = nullptr;
  active_.store(false, kRelaxed);
  throw_first_error(of_gpus);
}

void ReplicaGroup::get_gpus_ready() {
  if (!wants_gpus_) return;
  if (!gpus_) gpus_.emplace(context_.runtime(), size_);
  gpus_->get_ready();
}

ReplicaGpus& ReplicaGroup::gpus() {
  if (gpus_) return *gpus_;
  throw Error(Code::failed_precondition,
              "the replicas are host threads, which have no GPU: start with --replica-device=gpu");
}

/// What the replicas have given to their GPUs and not waited for.
std::exception_ptr ReplicaGroup::await_gpus() noexcept {
  if (!gpus_) return nullptr;
  try {
    gpus_->group().wait(timeout_);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void ReplicaGroup::throw_first_error(const std::exception_ptr& of_gpus) {
  failure_ = nullptr;
  std::exception_ptr first = of_gpus;
  for (std::size_t replica = errors_.size(); replica-- > 0;) {
    if (errors_[replica] && !told_[replica]) first = errors_[replica];
  }
  std::fill(errors_.begin(), errors_.end(), nullptr);
  if (first) std::rethrow_exception(first);
}

void ReplicaGroup::start_threads() {
  try {
    for (int replica = 1; replica < size_; ++replica) {
      threads_.emplace_back([this, replica, tag = log::rank_tag()](const std::stop_token& stop) {
        log::set_rank_tag(tag);
        live(replica, stop);
      });
    }
  } catch (const std::system_error& error) {
    const std::size_t started = threads_.size();
    threads_.clear();
    throw Error(Code::resource_exhausted,
                fmt::format("--replicas {}: after {} threads the system starts no more: {}", size_, started,
                            error.what()));
  }
}

void ReplicaGroup::live(int replica, const std::stop_token& stop) {
  std::uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (!start_.wait(lock, stop, [&] { return round_ != seen; })) return;
      seen = round_;
    }
    work(replica);
  }
}

void ReplicaGroup::work(int replica) {
  ReplicaContext self(*this, replica, size_);
  std::exception_ptr error;
  {
    const CurrentReplica here(self);
    if (replica != 0) Context::set_current(&context_);
    const CancellationScope scope(cancellation_);
    try {
      std::optional<ParameterServerStrategy::Scope> scope;
      if (strategy_ != nullptr) scope.emplace(strategy_);
      std::optional<gpu::On> on_gpu;
      if (gpus_) on_gpu.emplace(gpus_->stream(replica).implementation());
      (*body_)(self);
    } catch (...) {
      error = std::current_exception();
    }
  }
  const std::lock_guard lock(mutex_);
  states_[static_cast<std::size_t>(replica)] = error ? State::failed : State::returned;
  errors_[static_cast<std::size_t>(replica)] =
      std::move(error);  // its last owner is the thread that called run
  met_.notify_all();
  if (--running_ == 0) ended_.notify_one();
}

std::vector<int> ReplicaGroup::replicas_not(const std::function<bool(int)>& here) const {
  std::vector<int> missing;
  for (int replica = 0; replica < size_; ++replica) {
    if (!here(replica)) missing.push_back(replica);
  }
  return missing;
}

void ReplicaGroup::require_everybody(int replica, const std::string& call) {
  const auto have = [](const std::vector<int>& replicas) { return replicas.size() == 1 ? "has" : "have"; };
  // Those that only ended because another had are no reason of their own.
  const auto failed = replicas_not(
      [this](int other) { return state(other) != State::failed || told_[static_cast<std::size_t>(other)]; });
  if (!failed.empty() || broken_) {
    told_[static_cast<std::size_t>(replica)] = true;
    throw Error(Code::aborted,
                fmt::format("replica {} cannot go on in {}: {}", replica, call,
                            failed.empty() ? "the replicas are out of step"
                                           : fmt::format("{} {} failed", list(failed), have(failed))));
  }
  const auto dead = replicas_not([this](int other) { return state(other) != State::returned; });
  if (!dead.empty()) {
    broken_ = true;
    throw Error(Code::failed_precondition,
                fmt::format("replica {} waits in {} for {}, which {} returned without it; every replica must "
                            "make the same calls",
                            replica, call, list(dead), have(dead)));
  }
}

std::shared_ptr<const void> ReplicaGroup::meet(int replica, const detail::Collective& call) {
  if (size_ == 1) {
    const void* const value = call.value;
    return call.combine({&value, 1});
  }
  const auto mine = static_cast<std::size_t>(replica);
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  std::unique_lock lock(mutex_);
  require_everybody(replica, call.name);
  calls_[mine] = &call;
  const bool last = ++arrived_ == size_;
  if (last) {
    combine(lock);
  } else {
    const std::uint64_t meeting = meeting_;
    try {
      while (meeting_ == meeting) {
        // While they are combined the values must stay, so then there is no way out but the result.
        if (arrived_ == size_) {
          if (met_.wait_for(lock, timeout_) == std::cv_status::timeout && meeting_ == meeting) {
            log::warn("replica {} still waits in {} for what combines the values", replica, call.name);
          }
          continue;
        }
        require_everybody(replica, call.name);
        // One of those that came names who did not; it has left, so the others would name it, too.
        if (met_.wait_until(lock, deadline) == std::cv_status::timeout && meeting_ == meeting &&
            arrived_ < size_ && !broken_) {
          broken_ = true;
          const auto missing =
              replicas_not([this](int other) { return calls_[static_cast<std::size_t>(other)] != nullptr; });
          throw Error(Code::deadline_exceeded,
                      fmt::format("replica {} has waited {} ms in {} for {}", replica, timeout_.count(),
                                  call.name, list(missing)));
        }
      }
    } catch (const Error&) {
      calls_[mine] = nullptr;
      --arrived_;
      met_.notify_all();  // the others cannot meet any more either
      throw;
    }
  }
  if (failure_) throw_failure(last);
  return result_;
}

/// The replica that combined throws what it caught, the others an Error of their own where it is one: they
/// need not agree on when the last of them is done with it.
void ReplicaGroup::throw_failure(bool own) const {
  try {
    std::rethrow_exception(failure_);
  } catch (const Error& error) {
    if (own) throw;
    throw Error(error.code(), error.what(), error.where());
  }
}

/// By the replica that came last. The others sleep, so what it does may use all that they use.
void ReplicaGroup::combine(std::unique_lock<std::mutex>& lock) {
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
    context_.be_together(true);
    try {
      result = calls_[0]->combine(values);
    } catch (...) {
      failure = std::current_exception();
    }
    context_.be_together(false);
    lock.lock();
  }
  std::fill(calls_.begin(), calls_.end(), nullptr);
  arrived_ = 0;
  result_ = std::move(result);
  failure_ = std::move(failure);
  ++meeting_;
  met_.notify_all();
}

}  // namespace capstan::strategy
