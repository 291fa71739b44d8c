// replica_group.cpp -- the context of each replica's thread, and the error of a run.
#include "strategy/replica_group.hpp"

#include <algorithm>

#include "base/cancellation_request.hpp"
#include "base/log.hpp"
#include "capstan/strategy.hpp"
#include "gpu/real_gpu.hpp"
#include "strategy/context.hpp"
#include "strategy/current_replica.hpp"

namespace capstan::strategy {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

int replica_count(Context& context) {
  return static_cast<int>(context.runtime().settings().integer("replicas"));
}

}  // namespace

ReplicaGroup::ReplicaGroup(Context& context)
    : context_(context),
      timeout_(context.runtime().wait_timeout()),
      on_coordinator_(context.runtime().self().role == Role::coordinator),
      wants_gpus_(context.runtime().settings().text("replica-device") == "gpu"),
      errors_(static_cast<std::size_t>(replica_count(context))),
      rendezvous_(replica_count(context), timeout_,
                  [this](bool combining) { context_.act_for_all_replicas(combining); }),
      threads_(replica_count(context), [this](int replica) { work(replica); }) {
  // The coordinator needs GPUs only if its process is also a worker.
  const cluster::Runtime& runtime = context_.runtime();
  const bool is_worker = runtime.self().role == Role::worker || runtime.in_process();
  if (wants_gpus_ && is_worker) gpus_.emplace(runtime, size());
}

void ReplicaGroup::warn_unless_scheduled(const std::string& call) {
  if (!on_coordinator_ || allowed_ || active_.load(kRelaxed) || !warned_.insert(call).second) return;
  log::warn(
      "{}: a ParameterServerStrategy method is invoked without using ClusterCoordinator.schedule, so it runs "
      "on the coordinator, which can be slow. Call it in a function that is scheduled, on get_replicas()",
      call);
}

void ReplicaGroup::run(const std::function<void(ReplicaContext&)>& body) {
  if (current_replica() != nullptr || active_.load(kRelaxed)) {
    throw Error(Code::failed_precondition,
                "run is called inside of run: a replica cannot start replicas; call the function directly");
  }
  prepare_gpus();
  threads_.ensure_started();
  const bool was_shared = context_.shared();  // always true if the variables are outside of scopes
  context_.share(was_shared || size() > 1);
  active_.store(true, kRelaxed);
  cancellation_ = current_cancellation();
  std::fill(errors_.begin(), errors_.end(), nullptr);
  body_ = &body;
  rendezvous_.begin();
  threads_.begin_round();
  work(0);
  while (!threads_.wait(timeout_)) {
    log::warn("run: still waiting for {}", name_replicas(rendezvous_.running()));
  }
  context_.share(was_shared);
  const std::exception_ptr gpu_error = await_gpus();
  rendezvous_.end();
  active_.store(false, kRelaxed);
  throw_first_error(gpu_error);
}

void ReplicaGroup::prepare_gpus() {
  if (!wants_gpus_) return;
  if (!gpus_) gpus_.emplace(context_.runtime(), size());
  gpus_->get_ready();
}

ReplicaGpus& ReplicaGroup::gpus() {
  if (gpus_) return *gpus_;
  throw Error(Code::failed_precondition,
              "the replicas are host threads, which have no GPU: start with --replica-device=gpu");
}

/// Waits for GPU work that the replicas submitted and did not wait for.
std::exception_ptr ReplicaGroup::await_gpus() noexcept {
  if (!gpus_) return nullptr;
  try {
    gpus_->group().wait(timeout_);
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void ReplicaGroup::throw_first_error(const std::exception_ptr& gpu_error) {
  std::exception_ptr first = gpu_error;
  for (int replica = size(); replica-- > 0;) {
    const std::exception_ptr& error = errors_[static_cast<std::size_t>(replica)];
    if (error && !rendezvous_.was_aborted(replica)) first = error;
  }
  std::fill(errors_.begin(), errors_.end(), nullptr);
  if (first) std::rethrow_exception(first);
}

void ReplicaGroup::work(int replica) {
  ReplicaContext self(*this, replica, size());
  std::exception_ptr error;
  {
    const CurrentReplica here(self);
    if (replica != 0) Context::set_current(&context_);
    const CancellationScope cancellation(cancellation_);
    try {
      std::optional<ParameterServerStrategy::Scope> scope;
      if (strategy_ != nullptr) scope.emplace(strategy_);
      std::optional<gpu::DeviceGuard> on_gpu;
      if (gpus_) on_gpu.emplace(gpus_->stream(replica).implementation());
      (*body_)(self);
    } catch (...) {
      error = std::current_exception();
    }
  }
  const bool failed = error != nullptr;
  // Moved before leave(): the thread that called run then owns the last reference to the exception.
  errors_[static_cast<std::size_t>(replica)] = std::move(error);
  rendezvous_.leave(replica, failed);
}

}  // namespace capstan::strategy
