// strategy.cpp -- placing shards, and the public face of it.
#include "strategy/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.hpp"
#include "capstan/serialize.hpp"
#include "shard/partition.hpp"
#include "store/ps_server.hpp"

namespace capstan {
namespace strategy {
namespace {

thread_local Strategy* current_strategy = nullptr;

transport::Bytes view(const std::vector<std::byte>& bytes) { return bytes; }

}  // namespace

Strategy* Strategy::current() noexcept { return current_strategy; }
void Strategy::set_current(Strategy* strategy) noexcept { current_strategy = strategy; }

Strategy::Strategy(std::shared_ptr<cluster::Runtime> runtime, StrategyOptions options)
    : runtime_(std::move(runtime)), options_(std::move(options)), context_(runtime_) {
  if (runtime_->self().role != Role::coordinator) {
    throw Error(Code::failed_precondition, "a strategy is made on the coordinator; this is " +
                                               runtime_->self().name() +
                                               ", which runs Server(cluster).join()");
  }
  // A ps says hello as soon as it runs, which may be before a coordinator listens.
  runtime_->control().on_message(cluster::kHello, [](const transport::Message&) {});
  start_embedded_ps();
  Context::set_current(&context_);
}

void Strategy::start_embedded_ps() {
  for (const auto& rank : runtime_->embedded()) {
    if (rank->self().role != Role::ps) continue;
    embedded_ps_.emplace_back([rank] {
      try {
        store::PsServer(rank).run();
      } catch (const std::exception& error) {
        log::error("the ps of this process ended: {}", error.what());
      }
    });
  }
}

Strategy::~Strategy() {
  // By now the coordinator's dispatcher has ended, so the control fabric is ours.
  for (const cluster::Member& member : runtime_->members()) {
    if (member.role == Role::coordinator) continue;
    try {
      runtime_->control_peer(member).send(cluster::kShutdown, {});
    } catch (const Error& error) {
      log::debug("cannot tell {} that the job is over: {}", member.name(), error.what());
    }
  }
  runtime_->control().progress();
  embedded_ps_.clear();
  Context::set_current(nullptr);
}

std::int64_t Strategy::shards_of(const std::string& name, DType dtype,
                                 std::span<const std::int64_t> shape) const {
  if (!options_.variable_partitioner) return 1;
  const std::int64_t shards = options_.variable_partitioner(shape, dtype);
  if (shards < 1) {
    throw Error(Code::invalid_argument,
                fmt::format("variable_partitioner returned {} shards for variable \"{}\"; expected 1 or more",
                            shards, name));
  }
  return std::min(shards, shape[0]);
}

std::shared_ptr<const BoundVariable> Strategy::create_variable(const std::string& name, DType dtype,
                                                               std::span<const std::int64_t> shape,
                                                               const Initializer& initializer,
                                                               const Optimizer& optimizer) {
  if (name.empty()) throw Error(Code::invalid_argument, "a variable needs a name");
  const bool positive = std::all_of(shape.begin(), shape.end(), [](std::int64_t size) { return size > 0; });
  if (shape.empty() || shape.size() > 2 || !positive) {
    throw Error(Code::invalid_argument,
                fmt::format("variable \"{}\" has shape ({}); expected one or two sizes of 1 or more", name,
                            fmt::join(shape, ", ")));
  }
  for (const auto& other : variables()) {
    if (other->descriptor.name == name) {
      throw Error(Code::already_exists, "there is a variable \"" + name + "\" already");
    }
  }
  shard::VariableDescriptor descriptor;
  descriptor.id = next_variable_++;
  descriptor.name = name;
  descriptor.dtype = dtype;
  descriptor.shape.assign(shape.begin(), shape.end());
  descriptor.optimizer = optimizer;

  const auto shards = static_cast<std::uint64_t>(shards_of(name, dtype, shape));
  const shard::DivPartition partition(descriptor.rows(), shards);
  auto& rpc = context_.client().rpc();
  std::vector<cluster::RpcClient::Id> calls;
  for (std::uint64_t s = 0; s < shards; ++s) {
    const int ps = next_ps_++ % runtime_->count(Role::ps);
    const shard::CreateShard request{descriptor.id,
                                     static_cast<std::uint32_t>(s),
                                     name,
                                     dtype,
                                     descriptor.shape,
                                     partition.first_row_of(s),
                                     partition.rows_of(s),
                                     optimizer,
                                     initializer};
    calls.push_back(
        rpc.start(context_.client().link(ps).peer(), cluster::kCreateVariable, view(to_bytes(request))));
  }
  for (const auto call : calls) {
    // A large table takes its time to fill, so the wait grows with it: a tenth of a GB/s is slower than any
    // ps.
    const auto filling = std::chrono::milliseconds(descriptor.rows() * descriptor.row_bytes() / 100'000);
    descriptor.shards.push_back(from_bytes<shard::ShardPlace>(
        rpc.wait(call, runtime_->patience() + filling, "create variable \"" + name + "\"")));
  }
  auto bound = context_.add(std::move(descriptor));
  const std::lock_guard lock(variables_mutex_);
  variables_.push_back(bound);
  return bound;
}

std::pair<std::int32_t, std::uint32_t> Strategy::create_counter(const std::string& name) {
  if (std::find(counters_.begin(), counters_.end(), name) != counters_.end()) {
    throw Error(Code::already_exists, "there is a counter \"" + name + "\" already");
  }
  const auto ps_count = static_cast<std::size_t>(runtime_->count(Role::ps));
  const std::size_t number = counters_.size();
  if (number / ps_count >= shard::BoardLayout::kCounters) {
    throw Error(Code::resource_exhausted,
                fmt::format("{} counters are all that {} ps have room for", number, ps_count));
  }
  counters_.push_back(name);
  return {static_cast<std::int32_t>(number % ps_count), static_cast<std::uint32_t>(number / ps_count)};
}

std::vector<std::shared_ptr<const BoundVariable>> Strategy::variables() const {
  const std::lock_guard lock(variables_mutex_);
  return variables_;
}

std::vector<std::vector<std::byte>> Strategy::ask_every_ps(std::uint16_t type, transport::Bytes request,
                                                           std::chrono::milliseconds timeout,
                                                           const std::string& what) {
  auto& client = context_.client();
  std::vector<cluster::RpcClient::Id> calls;
  for (int ps = 0; ps < runtime_->count(Role::ps); ++ps) {
    calls.push_back(client.rpc().start(client.link(ps).peer(), type, request));
  }
  std::vector<std::vector<std::byte>> answers;
  for (const auto call : calls) answers.push_back(client.rpc().wait(call, timeout, what));
  return answers;
}

}  // namespace strategy

ParameterServerStrategy::ParameterServerStrategy(const Cluster& cluster, StrategyOptions options)
    : implementation_(std::make_unique<strategy::Strategy>(cluster.runtime(), std::move(options))) {
  set_group(implementation_->context().replicas());
}
ParameterServerStrategy::~ParameterServerStrategy() = default;
ParameterServerStrategy::ParameterServerStrategy(ParameterServerStrategy&&) noexcept = default;

ParameterServerStrategy::Scope::Scope(strategy::Strategy* strategy) : outer_(strategy::Strategy::current()) {
  if (outer_ != nullptr && outer_ != strategy) {
    throw Error(Code::failed_precondition,
                "the scope of one strategy cannot be opened inside the scope of another");
  }
  strategy::Strategy::set_current(strategy);
}

ParameterServerStrategy::Scope::~Scope() { strategy::Strategy::set_current(outer_); }

}  // namespace capstan
