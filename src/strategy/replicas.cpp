// replicas.cpp -- the public interface of a replica group, and the calling thread's replica.
#include "capstan/replica.hpp"

#include <fmt/format.h>

#include <utility>

#include "strategy/context.hpp"
#include "strategy/current_replica.hpp"
#include "strategy/replica_group.hpp"
#include "strategy/strategy.hpp"

namespace capstan {
namespace {

// In the function passed to merge_call, the group is set but the replica is null.
thread_local ReplicaContext* replica_of_this_thread = nullptr;
thread_local strategy::ReplicaGroup* group_of_this_thread = nullptr;

/// Returns the group of the strategy in use; null for the default strategy.
strategy::ReplicaGroup* group_in_use() noexcept {
  if (group_of_this_thread != nullptr) return group_of_this_thread;
  if (strategy::Strategy* current = strategy::Strategy::current(); current != nullptr) {
    return &current->context().replicas();
  }
  strategy::Context* context = strategy::Context::current_or_null();
  const bool on_worker = context != nullptr && context->runtime().self().role == Role::worker;
  return on_worker ? &context->replicas() : nullptr;
}

strategy::ReplicaGroup& default_group() {
  strategy::ReplicaGroup& group = strategy::Strategy::of_this_process().context().replicas();
  group.allow_run_without_coordinator(true);
  return group;
}

}  // namespace

namespace strategy {

ReplicaContext* current_replica() noexcept { return replica_of_this_thread; }
CurrentReplica::CurrentReplica(ReplicaContext& self) noexcept {
  replica_of_this_thread = &self;
  group_of_this_thread = &self.group();
}
CurrentReplica::~CurrentReplica() {
  replica_of_this_thread = nullptr;
  group_of_this_thread = nullptr;
}

}  // namespace strategy

namespace detail {

std::shared_ptr<const void> run_collective(strategy::ReplicaGroup& group, int replica,
                                           const Collective& call) {
  return group.rendezvous().run_collective(replica, call);
}

CrossReplicaScope::CrossReplicaScope() noexcept : replica_(std::exchange(replica_of_this_thread, nullptr)) {}
CrossReplicaScope::~CrossReplicaScope() { replica_of_this_thread = replica_; }

Replicas replicas_of(strategy::ReplicaGroup& group) { return Replicas(group); }

}  // namespace detail

ReplicaContext& get_replica_context() {
  if (replica_of_this_thread == nullptr) {
    throw Error(Code::failed_precondition,
                "get_replica_context: this thread is not a replica; call it in the function passed to `run`");
  }
  return *replica_of_this_thread;
}

bool in_replica_context() noexcept { return replica_of_this_thread != nullptr; }

Replicas get_strategy() {
  strategy::ReplicaGroup* group = group_in_use();
  return Replicas(group != nullptr ? *group : default_group());
}

bool has_strategy() noexcept { return group_in_use() != nullptr; }

Replicas get_replicas() { return Replicas(strategy::Context::current().replicas()); }

int Replicas::num_replicas_in_sync() const noexcept { return group_->size(); }

void Replicas::run_each(const std::function<void(ReplicaContext&)>& body) const {
  group_->warn_unless_scheduled("run");
  group_->run(body);
}

void Replicas::before_reduce() const {
  require_cross_replica("reduce", "all_reduce");
  group_->warn_unless_scheduled("reduce");
}

void Replicas::require_cross_replica(const char* call, const char* instead) const {
  if (!in_replica_context()) return;
  throw Error(
      Code::failed_precondition,
      fmt::format("{}: called by a replica inside `run`, expected a call outside; inside `run`, use {}", call,
                  instead));
}

void Replicas::require_own_worker(int worker) const {
  const cluster::Member& self = group_->context().runtime().self();
  if (self.role == Role::worker && self.index == worker) return;
  throw Error(Code::invalid_argument,
              fmt::format("Cannot reduce to another worker: the destination is worker {}, this is {}", worker,
                          self.name()));
}

std::int64_t Replicas::replicas_of_input(const char* call) const {
  require_cross_replica(call, "the batch that `run` passes to its function");
  return group_->size();
}

Error Replicas::only_on_tpus(const char* call) {
  return Error(Code::unimplemented, fmt::format("{}: logical devices exist only on TPUs", call));
}

void Replicas::allow_run_without_coordinator(bool allow) const {
  group_->allow_run_without_coordinator(allow);
}

}  // namespace capstan
