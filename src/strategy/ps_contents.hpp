// ps_contents.hpp -- the shards and the checkpoint from which a spare restores each ps.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cluster/membership/coordinator_memory.hpp"
#include "protocol/failover.hpp"

namespace capstan::strategy {

/// Kept by the coordinator. Written by the thread that creates variables and checkpoints, read by the thread
/// that drives the control fabric. Any thread.
class PsContents {
 public:
  struct Counter {
    std::int32_t ps = 0;
    std::uint32_t index = 0;
    std::uint64_t value = 0;
  };
  using Counters = std::vector<Counter>;
  struct Checkpoint {
    std::string directory;
    std::int64_t step = 0;
    std::vector<std::uint32_t> variables;  // numbers of the variables in the checkpoint
    Counters counters;                     // values at that step
    bool restored = false;  // restored, not saved: the program may create more of its variables
  };

  /// Starts with the checkpoint that a previous process of this coordinator recorded in `memory`, if any.
  /// Without spares, no checkpoint is recorded.
  PsContents(cluster::CoordinatorMemory& memory, bool has_spares);

  /// Records that the ps owns the shard.
  void add(int ps, protocol::CreateShard shard);
  /// Records an update group. Checkpoints do not contain its unfinished steps, so no ps can be restored.
  void add_group(const std::string& name);
  /// Records a checkpoint that was saved, or from which all its variables were restored.
  void set_checkpoint(Checkpoint checkpoint);
  /// Records that the checkpoint in directory `from` was renamed to `to`.
  void move_checkpoint(const std::string& from, const std::string& to);
  /// Records that no checkpoint has the values of the variables.
  void forget_checkpoint();
  /// Adds a variable or counter that was created after the restore, with its value from the checkpoint. Does
  /// nothing if another checkpoint was saved since.
  void extend_checkpoint(std::uint32_t variable);
  void extend_checkpoint(const Counter& counter);
  std::optional<Checkpoint> checkpoint() const;

  /// Throws Error(unavailable) if there is an update group.
  void require_no_group() const;
  /// Returns the request that makes a spare restore the ps with that index; the caller adds ranks and
  /// incarnation. Throws Error(unavailable) if the shards cannot be restored.
  protocol::FailoverRequest failover_of(int ps) const;

 private:
  void check_group() const;
  /// Writes the checkpoint to `memory_` for a restarted coordinator. REQUIRES: the caller holds the mutex.
  void note();

  cluster::CoordinatorMemory& memory_;
  const bool has_spares_;
  mutable std::mutex mutex_;
  std::vector<std::pair<int, protocol::CreateShard>> shards_;  // in the order of their creation
  std::string group_;
  std::optional<Checkpoint> checkpoint_;
};

}  // namespace capstan::strategy
