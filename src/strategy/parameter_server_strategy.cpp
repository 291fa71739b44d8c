// parameter_server_strategy.cpp -- the public interface of a strategy.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "capstan/resolvers.hpp"
#include "capstan/serialize.hpp"
#include "capstan/strategy.hpp"
#include "protocol/ps_messages.hpp"
#include "strategy/ps_calls.hpp"
#include "strategy/strategy.hpp"
#include "transport/message_types.hpp"

namespace capstan {

ParameterServerStrategy::ParameterServerStrategy(const Cluster& cluster, StrategyOptions options)
    : implementation_(std::make_unique<strategy::Strategy>(cluster.runtime(), std::move(options))) {
  set_group(implementation_->context().replicas());
}
ParameterServerStrategy::~ParameterServerStrategy() = default;
ParameterServerStrategy::ParameterServerStrategy(ParameterServerStrategy&&) noexcept = default;

ParameterServerStrategy::Scope::Scope(strategy::Strategy* strategy)
    : outer_(strategy::Strategy::current()), strategy_(strategy) {
  if (outer_ != nullptr && outer_ != strategy) {
    throw Error(Code::failed_precondition,
                "mixing strategies: the scope of one cannot be opened inside the scope of another");
  }
  strategy::Strategy::set_current(strategy);
}

ParameterServerStrategy::Scope::~Scope() {
  CAPSTAN_ASSERT(strategy::Strategy::current() == strategy_);  // scopes end in the reverse order
  strategy::Strategy::set_current(outer_);
}

ParameterServerStrategy::Colocation::Colocation(strategy::Strategy* strategy, int ps)
    : strategy_(strategy), outer_(strategy->variable_creator().placement().colocate(ps)) {}
ParameterServerStrategy::Colocation::~Colocation() {
  strategy_->variable_creator().placement().colocate(outer_);
}

ParameterServerStrategy::Colocation ParameterServerStrategy::colocate_vars_with(const AnyVariable& variable,
                                                                                std::size_t shard) {
  if (!variable_created_in_scope(variable)) {
    throw Error(Code::invalid_argument, "colocate_vars_with: variable \"" + variable.name() +
                                            "\" was not created in this strategy's scope");
  }
  const auto& shards = variable.bound()->descriptor.shards;
  if (shard >= shards.size()) {
    throw Error(Code::out_of_range,
                fmt::format("colocate_vars_with: variable \"{}\" has shards 0 to {}, not {}", variable.name(),
                            shards.size() - 1, shard));
  }
  return Colocation(implementation_.get(), shards[shard].ps);
}

bool ParameterServerStrategy::variable_created_in_scope(const AnyVariable& variable) const {
  // Compares contexts, because a shard as a variable is not registered, but has its variable's context.
  const auto& bound = *variable.bound();
  return !bound.on_coordinator && bound.context == &implementation_->context();
}

std::shared_ptr<const ClusterResolver> ParameterServerStrategy::cluster_resolver() const {
  const auto& runtime = implementation_->runtime();
  if (runtime->resolver()) return runtime->resolver();
  return std::make_shared<MpiClusterResolver>(Cluster(runtime));
}

std::vector<std::string> ParameterServerStrategy::variables(bool trainable_only) const {
  std::vector<std::string> names;
  for (const auto& variable : implementation_->variables().all()) {
    if (!trainable_only || variable->descriptor.trainable) names.push_back(variable->descriptor.name);
  }
  return names;
}

std::vector<PsLoad> ParameterServerStrategy::loads() {
  const cluster::Runtime& runtime = *implementation_->runtime();
  const strategy::ShardPlacement& placement = implementation_->variable_creator().placement();
  const auto replies =
      strategy::ask_every_ps(*implementation_->context().use_client(), transport::kPsStatistics, {},
                             runtime.wait_timeout(), "report its statistics");
  std::vector<PsLoad> loads;
  for (int ps = 0; ps < static_cast<int>(replies.size()); ++ps) {
    const auto statistics = from_bytes<protocol::PsStatistics>(replies[static_cast<std::size_t>(ps)]);
    const strategy::ShardPlacement::Load& placed = placement.load(ps);
    loads.push_back({ps, runtime.member(Role::ps, ps).host, placed.shards, placed.bytes, statistics.pushes,
                     statistics.rows_pushed, statistics.bytes_pushed, statistics.rows_sent});
  }
  for (const auto& variable : implementation_->variables().all()) {
    const auto& shards = variable->descriptor.shards;
    for (std::size_t shard = 0; shard < shards.size(); ++shard) {
      loads[static_cast<std::size_t>(shards[shard].ps)].shard_names.push_back(
          shard_name(variable->descriptor.name, shard, shards.size()));
    }
  }
  return loads;
}

namespace {

/// Returns the names of the shards, such as "w/part_0, b"; of a long list, the first few and a count.
std::string names_of(const PsLoad& load) {
  constexpr std::size_t kMaxNames = 4;
  const auto& names = load.shard_names;
  const std::size_t shown = std::min(names.size(), kMaxNames);
  std::string text =
      fmt::format("{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace

std::string ParameterServerStrategy::describe_loads() {
  std::string table =
      fmt::format("{:>4} {:<16} {:>7} {:>15} {:>12} {:>14} {:>15} {:>12}  {}\n", "ps", "host", "shards",
                  "bytes", "pushes", "rows pushed", "bytes pushed", "rows sent", "names");
  for (const PsLoad& load : loads()) {
    table += fmt::format("{:>4} {:<16} {:>7} {:>15} {:>12} {:>14} {:>15} {:>12}  {}\n", load.ps, load.host,
                         load.shards, load.bytes, load.pushes, load.rows_pushed, load.bytes_pushed,
                         load.rows_sent, names_of(load));
  }
  return table;
}

}  // namespace capstan
