// recovery.cpp -- announces the restart, waits for replies, and compares existing shards with new variables.
#include "strategy/recovery.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/supervisor/heartbeat.hpp"
#include "protocol/partition.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::strategy {
namespace {

std::string describe(const protocol::CreateShard& shard, std::uint64_t shards) {
  return fmt::format("shape ({}), {}{}, {}, in {} {}", fmt::join(shard.shape, ", "), to_string(shard.dtype),
                     shard.storage.int8 ? " as int8 rows" : "", protocol::describe(shard.optimizer), shards,
                     shards == 1 ? "shard" : "shards");
}

}  // namespace

Recovery::Recovery(cluster::Runtime& runtime, client::Client& client)
    : runtime_(runtime), deadline_(transport::deadline_in(runtime.coordinator_wait())) {
  if (runtime_.incarnation() == 0) return;
  cluster::CoordinatorRecord found = runtime_.coordinator_memory().read();
  for (std::string& name : found.variables) complete_.insert(std::move(name));
  groups_ = std::move(found.groups);
  announce_restart();
  await_ps();
  await_workers();
  list_shards(client);
}

Recovery::~Recovery() {
  if (runtime_.incarnation() > 0)
    runtime_.control().on_message(transport::kCoordinatorKnown, [](const transport::Message&) {});
}

/// The coordinator connects first: the other ranks do not know its new address.
void Recovery::announce_restart() {
  transport::Fabric& fabric = runtime_.control();
  fabric.on_message(transport::kCoordinatorKnown, [this](const transport::Message& message) {
    const auto incarnation = transport::read_header<std::int32_t>(message);
    if (incarnation == runtime_.incarnation()) answered_.insert(message.from);
  });
  const cluster::CoordinatorRecord found = runtime_.coordinator_memory().read();
  const auto to_others =
      to_bytes(cluster::CoordinatorReturned{runtime_.incarnation(), runtime_.self(), {}, {}});
  const auto to_ps = to_bytes(
      cluster::CoordinatorReturned{runtime_.incarnation(), runtime_.self(), found.workers, found.lost});
  for (const cluster::Member& member : runtime_.members()) {
    // A spare that replaces a ps is addressed as that ps.
    const bool spare = member.role == Role::spare && found.is_standby(member.rank);
    if (member.role != Role::ps && member.role != Role::evaluator && !spare) continue;
    runtime_.control_peer(member).send(transport::kCoordinatorReturned, {},
                                       member.role == Role::ps ? to_ps : to_others);
  }
  for (const int rank : runtime_.membership().worker_ranks()) {
    if (runtime_.membership().is_lost(rank)) continue;
    transport::Peer& worker = runtime_.control_peer(runtime_.member(rank));
    worker.send(transport::kCoordinatorReturned, {}, to_others);
    workers_.push_back(&worker);
  }
}

void Recovery::await_ps() {
  std::set<int> open;
  for (int ps = 0; ps < runtime_.count(Role::ps); ++ps) open.insert(runtime_.member(Role::ps, ps).rank);
  const auto known = [&] {
    std::erase_if(open, [this](int rank) { return answered_.contains(rank); });
    return open.empty() || runtime_.control_peer(runtime_.member(*open.begin())).failed();
  };
  const bool in_time = transport::progress_until(runtime_.control(), deadline_, known);
  if (open.empty()) return;
  const std::string name = runtime_.name_of(*open.begin());
  cluster::Heartbeat::forbid_restart();  // another restart would fail likewise
  if (in_time) {
    throw Error(Code::unavailable, name +
                                       " died with its shards while the coordinator was restarted; restart "
                                       "the job with --resume to continue from the last checkpoint");
  }
  throw Error(Code::deadline_exceeded,
              fmt::format("the restarted coordinator has waited {} ms (--coordinator-wait) for {}",
                          runtime_.coordinator_wait().count(), name));
}

/// Workers may change variables until they reply. The Coordinator later fences workers that do not reply.
void Recovery::await_workers() {
  (void)transport::progress_until(runtime_.control(), deadline_, [this] {
    std::erase_if(workers_, [this](const transport::Peer* worker) {
      return worker->failed() || answered_.contains(worker->rank());
    });
    return workers_.empty();
  });
}

void Recovery::list_shards(client::Client& client) {
  std::uint64_t count = 0;
  for (int ps = 0; ps < runtime_.count(Role::ps); ++ps) {
    const auto answer =
        client.connections().rpc().call(client.connections().at(ps).peer(), transport::kListShards, {},
                                        runtime_.wait_timeout(), "list its shards");
    for (auto& shard : from_bytes<std::vector<protocol::ListedShard>>(answer)) {
      last_variable_ = std::max(last_variable_, shard.description.variable);
      // A failed attempt to create the variable may have left shards under a lower number.
      auto& of_name = shards_[shard.description.name];
      if (!of_name.empty() && of_name[0].description.variable > shard.description.variable) continue;
      if (!of_name.empty() && of_name[0].description.variable < shard.description.variable) of_name.clear();
      of_name.push_back(std::move(shard));
      ++count;
    }
  }
  const auto step = runtime_.coordinator_memory().read().step;
  log::warn(
      "the coordinator was restarted ({} of at most {} restarts); the ps have {} variables in {} shards; {}",
      runtime_.incarnation(), runtime_.table().restarts, shards_.size(), count,
      step ? fmt::format("the last recorded step is {}", *step) : "no step was recorded");
}

std::vector<protocol::ListedShard> Recovery::shards() const {
  std::vector<protocol::ListedShard> all;
  for (const auto& [name, of_name] : shards_) all.insert(all.end(), of_name.begin(), of_name.end());
  std::sort(all.begin(), all.end(), [](const protocol::ListedShard& a, const protocol::ListedShard& b) {
    return std::pair(a.description.variable, a.description.shard) <
           std::pair(b.description.variable, b.description.shard);
  });
  return all;
}

bool Recovery::find(protocol::VariableDescriptor& variable, std::uint64_t shards,
                    Locations& locations) const {
  const auto found = shards_.find(variable.name);
  if (found == shards_.end()) return false;
  const protocol::DivPartition partition(variable.rows(), shards);
  protocol::CreateShard asked;
  asked.dtype = variable.dtype;
  asked.shape = variable.shape;
  asked.optimizer = variable.optimizer;
  asked.storage = variable.storage;
  for (const protocol::ListedShard& listed : found->second) {
    const protocol::CreateShard& there = listed.description;
    const bool same = there.dtype == asked.dtype && there.shape == asked.shape &&
                      there.storage.int8 == asked.storage.int8 &&
                      protocol::describe(there.optimizer) == protocol::describe(asked.optimizer) &&
                      there.shard < shards && there.rows == partition.rows_of(there.shard) &&
                      there.first_row == partition.first_row_of(there.shard);
    if (!same) {
      throw Error(
          Code::failed_precondition,
          fmt::format("variable \"{}\" exists since before the coordinator was killed, with {}; the program "
                      "now creates it with {}",
                      variable.name, describe(there, found->second.size()), describe(asked, shards)));
    }
    variable.id = there.variable;
    locations.emplace(there.shard, listed.location);
  }
  return true;
}

}  // namespace capstan::strategy
