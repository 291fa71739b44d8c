// recovery.hpp -- reconnects a restarted coordinator to the ranks, and lists the shards on the ps.
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

/// Does nothing in the first coordinator process of a job.
class Recovery {
 public:
  /// Sends all ranks the address of this process, waits for every ps and for workers that execute a function,
  /// and lists the shards. Throws Error: unavailable, deadline_exceeded.
  Recovery(cluster::Runtime& runtime, client::Client& client);
  ~Recovery();
  Recovery(const Recovery&) = delete;
  Recovery& operator=(const Recovery&) = delete;

  /// Returns the highest variable number in use; 0 without variables.
  std::uint32_t last_variable() const noexcept { return last_variable_; }
  /// If shards of the variable exist, sets its number, adds the shards' locations and returns true. Throws
  /// Error(failed_precondition) if the existing variable has another shape, dtype, optimizer or sharding.
  using Locations = std::map<std::uint32_t, protocol::ShardLocation>;
  bool find(protocol::VariableDescriptor& variable, std::uint64_t shards, Locations& locations) const;
  /// Returns true if the variable has received its first values.
  bool complete(const std::string& variable) const { return complete_.contains(variable); }

  /// Returns all shards, in the order of their creation.
  std::vector<protocol::ListedShard> shards() const;

  /// Returns the names of the previous process's update groups.
  const std::vector<std::string>& groups() const noexcept { return groups_; }

  /// Returns true once the rank has replied. A worker replies when it has ended the previous process's
  /// closures. Called by the thread that progresses the control fabric.
  bool has_answered(int rank) const { return answered_.contains(rank); }
  /// Returns the time at which ranks that have not replied count as dead.
  transport::Deadline deadline() const noexcept { return deadline_; }

 private:
  void announce_restart();
  void await_ps();
  void await_workers();
  void list_shards(client::Client& client);

  cluster::Runtime& runtime_;
  transport::Deadline deadline_;
  std::set<int> answered_;                                            // ranks
  std::vector<const transport::Peer*> workers_;                       // alive when the previous process died
  std::map<std::string, std::vector<protocol::ListedShard>> shards_;  // by variable
  std::set<std::string> complete_;
  std::vector<std::string> groups_;
  std::uint32_t last_variable_ = 0;
};

}  // namespace capstan::strategy
