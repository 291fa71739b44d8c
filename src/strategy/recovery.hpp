// recovery.hpp -- what the coordinator finds on the ps when it was started again in place of one that was
// killed.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "client/client.hpp"
#include "cluster/runtime.hpp"
#include "protocol/ps_messages.hpp"

namespace capstan::strategy {

/// Nothing of it does anything on a coordinator that is the first of its job.
class Recovery {
 public:
  /// Says to all ranks that the coordinator is back, waits until every ps takes its questions, and for
  /// workers that are in a function, and asks what shards there are. Throws Error: unavailable,
  /// deadline_exceeded.
  Recovery(cluster::Runtime& runtime, client::Client& client);
  ~Recovery();
  Recovery(const Recovery&) = delete;
  Recovery& operator=(const Recovery&) = delete;

  /// Numbers of variables up to here have been used.
  std::uint32_t last_variable() const noexcept { return last_variable_; }
  /// Gives a variable that is there already its number and the places of its shards that are there, by shard;
  /// true then. Throws Error(failed_precondition) when it is another one than asked for.
  using Locations = std::map<std::uint32_t, protocol::ShardLocation>;
  bool find(protocol::VariableDescriptor& variable, std::uint64_t shards, Locations& locations) const;
  /// It has had its first values.
  bool complete(const std::string& variable) const { return complete_.contains(variable); }

  /// All shards that are there, in the order of their creation.
  std::vector<protocol::ListedShard> shards() const;

  /// Update groups of the earlier process, by name.
  const std::vector<std::string>& groups() const noexcept { return groups_; }

  /// A worker has ended what it ran for the earlier coordinator, and the evaluator has answered. Read by the
  /// thread that drives the control fabric.
  bool has_answered(int rank) const { return answered_.contains(rank); }
  /// Time at which ranks without an answer are declared dead.
  transport::Deadline deadline() const noexcept { return deadline_; }

 private:
  void call_out();
  void await_ps();
  void await_workers();
  void list_shards(client::Client& client);

  cluster::Runtime& runtime_;
  transport::Deadline deadline_;
  std::set<int> answered_;                       // ranks
  std::vector<const transport::Peer*> workers_;  // that were there when the earlier process was killed
  std::map<std::string, std::vector<protocol::ListedShard>> shards_;  // by variable
  std::set<std::string> complete_;
  std::vector<std::string> groups_;
  std::uint32_t last_variable_ = 0;
};

}  // namespace capstan::strategy
