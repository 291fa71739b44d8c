// shard_placement.hpp -- chooses the number of shards of a new variable, and the ps of each shard.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "capstan/strategy.hpp"

namespace capstan::strategy {

/// Used by the thread that creates variables. Does not communicate.
class ShardPlacement {
 public:
  ShardPlacement(int ps_count, Partitioner partitioner, Placement placement);

  /// Returns the number of shards. Throws Error(invalid_argument) if the partitioner returns anything but a
  /// division of axis 0.
  std::uint64_t shard_count(const std::string& name, DType dtype, const Shape& shape) const;

  /// Selects the ps of the next shard, whose values and slots take `bytes`.
  int next_ps(std::uint64_t bytes);

  /// Places each new variable as one shard on the ps with this index; -1 returns to the configured placement.
  /// Returns the previous value.
  int colocate(int ps) noexcept { return std::exchange(colocated_, ps); }

  /// Shards that were placed on a ps.
  struct Load {
    std::uint64_t shards = 0;
    std::uint64_t bytes = 0;
  };
  const Load& load(int ps) const { return state_.loads[static_cast<std::size_t>(ps)]; }

  /// Effect of next_ps() calls; a failed creation restores the state that it started from.
  struct State {
    int next_ps = 0;          // round robin, a shard at a time
    std::vector<Load> loads;  // by ps
  };
  const State& state() const noexcept { return state_; }
  void restore(State state) { state_ = std::move(state); }

 private:
  Partitioner partitioner_;
  Placement placement_;
  int colocated_ = -1;
  State state_;
};

}  // namespace capstan::strategy
