// variable.cpp -- handles check shapes; the client transfers the bytes.
#include "capstan/variable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/with_type.hpp"
#include "capstan/partitioners.hpp"
#include "strategy/bound_checks.hpp"
#include "strategy/create_once.hpp"
#include "strategy/merge_changes.hpp"
#include "strategy/pending_call.hpp"
#include "strategy/read_cache.hpp"
#include "strategy/strategy.hpp"

namespace capstan {
namespace {

using strategy::BoundVariable;
using strategy::check_elements;
using strategy::check_push;
using strategy::Context;
using strategy::GradientFilter;
using strategy::rows_of;
using strategy::Strategy;

Strategy& scope_strategy(const std::string& what) {
  strategy::require_one_thread(what);
  Strategy* strategy = Strategy::current();
  if (strategy == nullptr) {
    throw Error(Code::failed_precondition, what +
                                               " is created outside of a strategy's scope: open one on the "
                                               "coordinator, auto scope = strategy.scope()");
  }
  return *strategy;
}

Context& worker_context(const char* call) {
  Context& context = Context::current();
  if (context.runtime().self().role == Role::worker) return context;
  throw Error(Code::failed_precondition, std::string(call) +
                                             " of an update group is for functions that run on a worker; "
                                             "this is " +
                                             context.runtime().self().name());
}

strategy::ClientUse client_of(const BoundVariable& bound) { return bound.context->use_client(); }

/// Rejects a call on variables of different strategies, since it uses one client for all.
void check_together(const BoundVariable& first, const BoundVariable& other, const char* call) {
  if (first.context == other.context) return;
  throw Error(Code::invalid_argument,
              fmt::format("{} of variables \"{}\" and \"{}\" in one call: their strategies differ", call,
                          first.descriptor.name, other.descriptor.name));
}

/// `parts`: of AnyVariable::Part.
template <class Parts>
std::vector<client::Client::Lookup> to_lookups(const Parts& parts) {
  std::vector<client::Client::Lookup> lookups;
  for (const auto& part : parts) {
    const BoundVariable& bound = *part.variable->bound();
    check_together(*parts.front().variable->bound(), bound, "lookup");
    check_elements(bound, part.elements, part.ids.size(), "lookup");
    lookups.push_back({&bound.descriptor, part.ids, part.out});
  }
  return lookups;
}

/// Rejects operations that the dtype does not support, and integer division by 0.
void check_operands(const BoundVariable& bound, const strategy::RowChange& change, const std::string& call) {
  using Op = protocol::RowOp;
  const protocol::VariableDescriptor& d = bound.descriptor;
  if (d.dtype == DType::boolean && change.op != Op::set) {
    throw Error(Code::invalid_argument,
                fmt::format("{} of variable \"{}\": a bool can only be assigned", call, d.name));
  }
  if (change.op != Op::div || is_floating(d.dtype)) return;
  with_type(d.dtype, [&]<class T>(std::type_identity<T>) {
    const auto* divisors = static_cast<const T*>(change.values);
    const auto* zero = std::find(divisors, divisors + change.elements, T{});
    if (zero == divisors + change.elements) return;
    throw Error(Code::invalid_argument, fmt::format("{} of variable \"{}\": element {} of the divisors is 0",
                                                    call, d.name, zero - divisors));
  });
}

/// Applies a change. If several replicas run, combines their changes and applies the result once.
void apply(const BoundVariable& bound, std::size_t rows, const strategy::RowChange& change) {
  const std::string call = strategy::name_of(change.op, change.scatter);
  check_elements(bound, change.elements, rows, call.c_str());
  check_operands(bound, change, call);
  const auto send = [&](const strategy::RowChange& c) {
    if (c.scatter) {
      client_of(bound)->scatter(bound.descriptor, c.op, c.ids, c.values);
    } else {
      client_of(bound)->update(bound.descriptor, c.op, c.first_row, rows, c.values);
    }
  };
  if (strategy::among_replicas()) {
    strategy::merge_changes(bound.descriptor, change, send);
  } else {
    send(change);
  }
}

}  // namespace

AnyVariable::AnyVariable(std::string name, DType dtype, const Shape* shape,
                         const detail::AnyInitialValue& initial, const VariableOptions& options)
    : bound_(strategy::create_once(name, [&](strategy::VariableCreator& creator) {
        return creator.create(name, dtype, shape, initial, options);
      })) {}

const std::string& AnyVariable::name() const { return bound_->descriptor.name; }
DType AnyVariable::dtype() const { return bound_->descriptor.dtype; }
Shape AnyVariable::shape() const {
  return {bound_->descriptor.shape.begin(), bound_->descriptor.shape.end()};
}
std::uint64_t AnyVariable::rows() const { return bound_->descriptor.rows(); }
std::uint64_t AnyVariable::width() const { return bound_->descriptor.width(); }
bool AnyVariable::trainable() const { return bound_->descriptor.trainable; }
VariableAggregation AnyVariable::aggregation() const { return bound_->descriptor.aggregation; }
VariableSynchronization AnyVariable::synchronization() const { return bound_->descriptor.synchronization; }
bool AnyVariable::on_coordinator() const { return bound_->on_coordinator; }

std::vector<ShardInfo> AnyVariable::shards() const {
  std::vector<ShardInfo> shards;
  const auto& locations = bound_->descriptor.shards;
  for (const auto& location : locations) {
    shards.push_back({location.first_row, location.rows, location.ps,
                      shard_name(name(), shards.size(), locations.size())});
  }
  return shards;
}

std::vector<std::shared_ptr<const BoundVariable>> AnyVariable::bound_shards() const {
  const std::size_t count = bound_->descriptor.shards.size();
  if (count == 1) return {bound_};
  std::vector<std::shared_ptr<const BoundVariable>> parts;
  for (std::size_t shard = 0; shard < count; ++shard) {
    parts.push_back(strategy::part_of(*bound_, static_cast<std::uint32_t>(shard)));
  }
  return parts;
}

std::shared_ptr<const BoundVariable> AnyVariable::bound_exactly() const {
  return strategy::exact_copy_of(*bound_);
}

std::shared_ptr<const BoundVariable> AnyVariable::find(const std::string& name, DType dtype) {
  auto found = strategy::strategy_of_new(name).variables().find(name);
  if (found != nullptr && found->descriptor.table) {
    throw Error(Code::invalid_argument, fmt::format("\"{}\" is a dynamic table, expected a variable", name));
  }
  if (found != nullptr && found->descriptor.dtype != dtype) {
    throw Error(Code::invalid_argument, fmt::format("variable \"{}\" is {}, expected {}", name,
                                                    to_string(found->descriptor.dtype), to_string(dtype)));
  }
  return found;
}

AnyVariable::Sent AnyVariable::to_send() const {
  if (bound_->on_coordinator) {
    throw Error(Code::failed_precondition,
                "variable \"" + name() +
                    "\" was created outside of a strategy's scope and lives on the "
                    "coordinator alone; create it in the scope to use it in scheduled functions");
  }
  return {bound_->descriptor.id, bound_->descriptor.part};
}

std::uint64_t AnyVariable::skipped_rows() const {
  return bound_->context->gradients().skipped_rows(bound_->descriptor.id);
}

void AnyVariable::flush() const { client_of(*bound_)->flush(); }

void AnyVariable::set_learning_rate(double rate) const {
  Optimizer optimizer = bound_->descriptor.optimizer;
  optimizer.learning_rate = rate;
  optimizer.schedule = {};
  protocol::check_optimizer(name(), dtype(), optimizer);
  client_of(*bound_)->set_learning_rate(bound_->descriptor, rate);
}

void AnyVariable::bind(const Sent& sent, DType dtype) {
  bound_ = Context::current().find(sent.id);
  CAPSTAN_ASSERT(bound_->descriptor.dtype == dtype);
  if (sent.part != 0) bound_ = strategy::part_of(*bound_, sent.part - 1);
}

void AnyVariable::lookup(std::span<const std::int64_t> ids, void* out, std::size_t room,
                         ReadMode mode) const {
  check_elements(*bound_, room, ids.size(), "lookup");
  client_of(*bound_)->lookup(bound_->descriptor, ids, out, mode);
}

void AnyVariable::pull(std::uint64_t first_row, void* out, std::size_t elements, ReadMode mode) const {
  const std::uint64_t rows = rows_of(*bound_, elements);
  check_elements(*bound_, elements, rows, "pull");
  client_of(*bound_)->pull(bound_->descriptor, first_row, rows, out, mode);
}

void AnyVariable::pull_complete(void* out, std::size_t elements) const {
  const auto read = [&](void* to) { pull(0, to, elements, ReadMode::relaxed); };
  if (strategy::ReadCache* cache = strategy::ReadCache::current(); cache != nullptr) {
    cache->read(bound_, out, elements * size_of(dtype()), read);
  } else {
    read(out);
  }
}

std::shared_ptr<const std::byte> AnyVariable::mapped_memory() const {
  return client_of(*bound_)->mapped(bound_->descriptor);
}

Pending AnyVariable::pending_read(Context& context, std::uint64_t reading) {
  if (reading == 0) return {};
  Pending pending(std::make_unique<strategy::PendingRead>(context, reading));
  context.receiver().start();
  return pending;
}

Pending AnyVariable::pull_async(std::uint64_t first_row, void* out, std::size_t elements) const {
  const std::uint64_t rows = rows_of(*bound_, elements);
  check_elements(*bound_, elements, rows, "pull_async");
  const client::Client::Lookup lookup{
      .variable = &bound_->descriptor, .out = out, .first_row = first_row, .rows = rows};
  return pending_read(*bound_->context, client_of(*bound_)->start({&lookup, 1}));
}

Pending AnyVariable::start_lookups(std::span<const Part> parts, ReadMode mode) {
  const auto lookups = to_lookups(parts);
  strategy::Context* context = parts.front().variable->bound_->context;
  return pending_read(*context, context->use_client()->start(lookups, mode));
}

void AnyVariable::lookup_parts(std::span<const Part> parts, ReadMode mode) {
  const auto lookups = to_lookups(parts);
  const auto client = client_of(*parts.front().variable->bound_);
  client->finish(client->start(lookups, mode));  // this thread receives, so the receiver is not needed
}

void AnyVariable::push_parts(std::span<const Part> parts) {
  if (parts.empty()) return;
  std::vector<client::Client::Push> pushes;
  for (const Part& part : parts) {
    check_together(*parts.front().variable->bound_, *part.variable->bound_, "push");
    check_elements(*part.variable->bound_, part.elements, part.ids.size(), "push");
    check_push(*part.variable->bound_);
    pushes.push_back({&part.variable->bound_->descriptor, part.ids, part.gradient});
  }
  const auto client = client_of(*parts.front().variable->bound_);
  std::vector<GradientFilter::FiniteRows> kept;  // copies of parts with skipped rows; outlives the push
  if (auto& filter = parts.front().variable->bound_->context->gradients(); !filter.passes_all()) {
    kept.reserve(parts.size());
    for (client::Client::Push& push : pushes) {
      auto left = filter.sparse(*push.variable, push.ids, push.gradient);
      if (!left) continue;
      kept.push_back(std::move(*left));
      push.ids = kept.back().ids;
      push.gradient = kept.back().gradient.data();
    }
  }
  client->push(pushes);
}

Pending::Pending() = default;
Pending::Pending(std::unique_ptr<strategy::PendingCall> call) : call_(std::move(call)) {}
Pending::Pending(Pending&& other) noexcept = default;
Pending& Pending::operator=(Pending&& other) noexcept = default;
Pending::~Pending() = default;

bool Pending::ready() const { return call_ == nullptr || call_->ready(); }

void Pending::wait() {
  if (call_ == nullptr) return;
  call_->wait();
  call_.reset();
}

Pending AnyVariable::pushed() const {
  return Pending(std::make_unique<strategy::PendingPush>(*bound_->context,
                                                         client_of(*bound_)->pushed(bound_->descriptor)));
}

void AnyVariable::push(std::span<const std::int64_t> ids, const void* gradient, std::size_t elements) const {
  check_elements(*bound_, elements, ids.size(), "push");
  check_push(*bound_);
  const auto client = client_of(*bound_);
  if (auto& filter = bound_->context->gradients(); !filter.passes_all()) {
    if (const auto kept = filter.sparse(bound_->descriptor, ids, gradient)) {
      return client->push(bound_->descriptor, kept->ids, kept->gradient.data());
    }
  }
  client->push(bound_->descriptor, ids, gradient);
}

void AnyVariable::push_dense(const void* gradient, std::size_t elements) const {
  check_elements(*bound_, elements, rows(), "push_dense");
  check_push(*bound_);
  const auto client = client_of(*bound_);
  auto& filter = bound_->context->gradients();
  if (!filter.passes_all() && !filter.dense(bound_->descriptor, gradient)) return client->skip_push();
  client->push_dense(bound_->descriptor, gradient);
}

void AnyVariable::update(Op op, std::uint64_t first_row, const void* values, std::size_t elements) const {
  apply(*bound_, rows_of(*bound_, elements),
        {static_cast<protocol::RowOp>(op), false, {}, first_row, values, elements});
}

void AnyVariable::update_all(Op op, const void* values, std::size_t elements) const {
  apply(*bound_, rows(), {static_cast<protocol::RowOp>(op), false, {}, 0, values, elements});
}

void AnyVariable::scatter(Op op, std::span<const std::int64_t> ids, const void* values,
                          std::size_t elements) const {
  if (bound_->descriptor.shape.empty()) {
    throw Error(Code::invalid_argument, "variable \"" + name() + "\" is a scalar, which has no rows");
  }
  apply(*bound_, ids.size(), {static_cast<protocol::RowOp>(op), true, ids, 0, values, elements});
}

UpdateGroup::UpdateGroup(std::string name, const Synchronization& synchronization)
    : id_(scope_strategy("update group \"" + name + "\"").update_groups().create(name, synchronization)),
      name_(std::move(name)) {}

std::int64_t UpdateGroup::end_step() const {
  return static_cast<std::int64_t>(worker_context("end_step").use_client()->end_step(id_, name_));
}

void UpdateGroup::restart() const {
  scope_strategy("update group \"" + name_ + "\"").update_groups().restart(id_, name_);
}

void UpdateGroup::leave() const { worker_context("leave").use_client()->leave(id_); }

Counter::Counter(std::string name) {
  Strategy& strategy = scope_strategy("counter \"" + name + "\"");
  context_ = &strategy.context();
  const strategy::CounterRegistry::Slot slot = strategy.counters().create(name);
  ps_ = slot.ps;
  index_ = slot.index;
}

strategy::Context& Counter::context_here() { return Context::current(); }

void Counter::add(std::int64_t delta) const {
  (void)Context::current();  // throws on a thread that has no strategy
  context_->use_client()->count(ps_, index_, static_cast<std::uint64_t>(delta));
}

std::int64_t Counter::fetch_add(std::int64_t delta) const {
  (void)Context::current();
  return static_cast<std::int64_t>(
      context_->use_client()->fetch_add(ps_, index_, static_cast<std::uint64_t>(delta)));
}

}  // namespace capstan
