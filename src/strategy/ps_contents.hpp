// ps_contents.hpp -- what each ps holds, kept by the coordinator for a spare that has to take its place.
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

/// Written by the thread that makes variables and checkpoints, read by the coordinator's. Any thread.
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
    std::uint32_t last_variable = 0;  // made before it
    Counters counters;                // as they were then
    bool restored = false;            // and not saved, so that variables made later may be in it
  };

  /// The checkpoint is what an earlier process of this coordinator has noted in `memory`, if it has.
  explicit PsContents(cluster::CoordinatorMemory& memory);

  /// A shard that is there now.
  void add(int ps, protocol::CreateShard shard);
  /// Update groups keep their steps in the ps alone.
  void add_group(const std::string& name);
  /// One that was saved, or that all variables were restored from.
  void set_checkpoint(Checkpoint checkpoint);
  void move_checkpoint(const std::string& from, const std::string& to);
  /// None is what the variables are.
  void forget_checkpoint();
  /// It has a variable as well that was made after it was restored. Nothing when another one was saved since.
  void extend_checkpoint(std::uint32_t variable);
  void extend_checkpoint(const Counter& counter);
  std::optional<Checkpoint> checkpoint() const;

  /// Throws Error(unavailable) when there is an update group.
  void require_no_group() const;
  /// Of the ps with that index; who the spare is and what it has to know of ranks is left to the caller.
  /// Throws Error(unavailable) that says why the shards cannot be had.
  protocol::FailoverRequest takeover_of(int ps) const;

 private:
  void check_group() const;
  /// For the coordinator's next process. REQUIRES: the mutex.
  void note();

  cluster::CoordinatorMemory& memory_;
  mutable std::mutex mutex_;
  std::vector<std::pair<int, protocol::CreateShard>> shards_;  // in the order of their creation
  std::string group_;
  std::optional<Checkpoint> checkpoint_;
};

}  // namespace capstan::strategy
