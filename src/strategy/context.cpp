// context.cpp -- variables by number, and the context of the calling thread.
#include "strategy/context.hpp"

#include <vector>

#include "capstan/error.hpp"
#include "capstan/partitioners.hpp"
#include "strategy/current_replica.hpp"
#include "strategy/replica_group.hpp"

namespace capstan::strategy {
namespace {

thread_local Context* current_context = nullptr;
thread_local std::vector<Context*> strategies;  // contexts of this thread's strategies, in order of creation

}  // namespace

std::shared_ptr<const BoundVariable> part_of(const BoundVariable& variable, std::uint32_t shard) {
  BoundVariable part = variable;
  protocol::VariableDescriptor& d = part.descriptor;
  d.name = shard_name(d.name, shard, variable.descriptor.shards.size());
  d.part = shard + 1;
  d.shards = {variable.descriptor.shards.at(shard)};
  d.shards[0].first_row = 0;
  d.shape[0] = d.shards[0].rows;
  return std::make_shared<const BoundVariable>(std::move(part));
}

std::shared_ptr<const BoundVariable> exact_copy_of(const BoundVariable& variable) {
  BoundVariable exact = variable;
  exact.descriptor.communication = {};
  return std::make_shared<const BoundVariable>(std::move(exact));
}

Context::Context(std::shared_ptr<cluster::Runtime> runtime)
    : client_(std::move(runtime)), replicas_(std::make_unique<ReplicaGroup>(*this)) {
  share(false);
}
Context::~Context() = default;

int Context::pusher() const noexcept {
  const ReplicaContext* const replica = current_replica();
  return replica == nullptr || acts_for_all_ ? 0 : replica->replica_id_in_sync_group();
}

std::shared_ptr<const BoundVariable> Context::add(protocol::VariableDescriptor descriptor,
                                                  bool on_coordinator) {
  const std::uint32_t id = descriptor.id;
  auto bound =
      std::make_shared<const BoundVariable>(BoundVariable{std::move(descriptor), this, on_coordinator});
  variables_[id] = bound;
  return bound;
}

std::shared_ptr<const BoundVariable> Context::find(std::uint32_t id) const {
  const auto found = variables_.find(id);
  if (found == variables_.end()) {
    throw Error(Code::internal, "variable " + std::to_string(id) + " is unknown on this rank");
  }
  return found->second;
}

Context* Context::current_or_null() noexcept { return current_context; }

Context& Context::current() {
  if (current_context == nullptr) {
    throw Error(Code::failed_precondition,
                "variables can be used only by the thread that made the strategy and in scheduled functions");
  }
  return *current_context;
}

void Context::set_current(Context* context) noexcept { current_context = context; }

void Context::add_to_thread(Context& context) {
  strategies.push_back(&context);
  current_context = &context;
}

void Context::remove_from_thread(Context& context) noexcept {
  std::erase(strategies, &context);
  if (current_context == &context) current_context = strategies.empty() ? nullptr : strategies.back();
}

}  // namespace capstan::strategy
