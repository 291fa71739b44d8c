// variable_options.hpp -- what a variable is, besides its name, shape and values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "capstan/optimizers.hpp"
#include "capstan/update_group.hpp"

namespace capstan {

/// What becomes of the values that the replicas of one worker assign to a variable at the same time. Workers
/// always update asynchronously. Sent over the wire: add at the end, never renumber.
enum class VariableAggregation : std::uint8_t {
  none = 0,  ///< an error with more than one replica
  sum = 1,
  mean = 2,
  only_first_replica = 3,  ///< what replica 0 assigns
};

/// Accepted as TensorFlow does. A variable is one copy, on the ps, so all of them mean the same.
/// Sent over the wire: add at the end, never renumber.
enum class VariableSynchronization : std::uint8_t { automatic = 0, none = 1, on_write = 2, on_read = 3 };

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
};

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
