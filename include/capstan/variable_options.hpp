// variable_options.hpp -- what a variable is, besides its name, shape and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "capstan/optimizers.hpp"
#include "capstan/update_group.hpp"

namespace capstan {

/// What becomes of the values with which the replicas of one worker, inside run, change a variable at the
/// same time, by an assignment or a scatter operation. All of them must make the call, and assign to the same
/// rows. Of scatter operations each replica names rows of its own: a sum has all of them, one replica's after
/// another's, and a mean the same with values divided by the number of replicas; only add, sub, mul and div
/// have these, others are Error(unimplemented). Of bools there is no sum and of integers no mean:
/// Error(invalid_argument). Workers always update asynchronously.
/// Sent over the wire: add at the end, never renumber.
enum class VariableAggregation : std::uint8_t {
  none = 0,  ///< Error(invalid_argument) with more than one replica
  sum = 1,
  mean = 2,
  only_first_replica = 3,  ///< what replica 0 does
};

/// Accepted as TensorFlow does. A variable is one copy, on the ps, so all of them mean the same.
/// Sent over the wire: add at the end, never renumber.
enum class VariableSynchronization : std::uint8_t { automatic = 0, none = 1, on_write = 2, on_read = 3 };

/// Where a ps keeps its part of a variable, values and the optimizer's slots.
/// Sent over the wire: add at the end, never renumber.
enum class ShardMemory : std::uint8_t {
  host = 0,
  /// The memory of the ps's GPU, which applies the pushes. Reads to the memory of hosts are served by the ps,
  /// and not mapped.
  device = 1,
};

struct VariableOptions {
  /// The ps's rule for pushes; none: SGD{}, of integers SGD{1}, since they take SGD with a whole learning
  /// rate and nothing else.
  std::optional<Optimizer> optimizer = {};
  /// Whether training is meant to change it; pushes are taken either way.
  bool trainable = true;
  VariableAggregation aggregation = VariableAggregation::none;
  VariableSynchronization synchronization = VariableSynchronization::automatic;
  /// Whose pushes to it wait for each other; none: asynchronous.
  std::optional<UpdateGroup> group = {};
  /// none: StrategyOptions::memory. Its creation throws Error: failed_precondition where a ps has no GPU,
  /// resource_exhausted where the GPU has no room; the ps goes on.
  std::optional<ShardMemory> memory = {};
  /// Whether updates are rounded to the dtype by chance, so that small ones count on the average. Of float16
  /// and bfloat16 in the memory of GPUs alone; anything else is Error(invalid_argument).
  bool stochastic_rounding = false;
};

constexpr std::string_view to_string(ShardMemory memory) noexcept {
  return memory == ShardMemory::device ? "device" : "host";
}

constexpr std::string_view to_string(VariableAggregation aggregation) noexcept {
  switch (aggregation) {
    case VariableAggregation::none:
      return "none";
    case VariableAggregation::sum:
      return "sum";
    case VariableAggregation::mean:
      return "mean";
    case VariableAggregation::only_first_replica:
      return "only_first_replica";
  }
  return "unknown";
}

}  // namespace capstan
