// variable_options.hpp -- properties of a variable besides its name, shape and values; update groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "capstan/detail/export.hpp"
#include "capstan/optimizers.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

/// Pushes are applied as they come, nobody waits for anybody.
struct Asynchronous {};

/// Pushes are applied as they come; a worker that is more than `bound` steps ahead of the slowest waits for
/// it (Ho et al., "More effective distributed ML via a stale synchronous parallel parameter server", NIPS
/// 2013).
struct StaleSynchronous {
  std::int64_t bound = 0;
};

/// What the workers push in a step is summed, in the order of their indices, or averaged over them, and
/// applied once, when all but `backup_workers` of them have ended the step. What a later one has pushed for
/// it is dropped (Chen et al., "Revisiting distributed synchronous SGD", 2016).
struct Synchronous {
  bool average = true;
  int backup_workers = 0;
};

using Synchronization = std::variant<Asynchronous, StaleSynchronous, Synchronous>;

/// Variables whose workers keep step. Made on the coordinator, in a strategy's scope; given to variables as
/// VariableOptions::group; handed to closures as an argument. Every worker of the cluster takes part, until
/// it leaves or dies. docs/consistency.md says what each mode promises.
class CAPSTAN_API UpdateGroup {
 public:
  /// Throws Error: failed_precondition outside of a scope, invalid_argument for a negative bound, backup
  /// workers that leave no worker to wait for, or a name that no variable could have.
  UpdateGroup(std::string name, const Synchronization& synchronization);

  /// In a closure: ends this worker's step. Returns when what was pushed before has been applied, or dropped,
  /// and the mode lets the worker go on; the number of steps that it has ended, which skips those that others
  /// have ended without it. Throws Error: deadline_exceeded naming the workers that are behind, unavailable.
  std::int64_t end_step() const;
  /// In a closure: nobody waits for this worker any more. It comes back with its next end_step. What every
  /// closure that ends steps does last, so that those of workers that have more to do go on.
  void leave() const;
  /// On the coordinator, while no closure of the group runs: all workers that live take part again.
  void restart() const;

  const std::string& name() const noexcept { return name_; }
  std::uint32_t id() const noexcept { return id_; }

 private:
  friend struct Serializer<UpdateGroup>;
  UpdateGroup() = default;
  std::uint32_t id_ = 0;
  std::string name_;
};

template <>
struct Serializer<UpdateGroup> {
  static void write(Writer& out, const UpdateGroup& group) {
    capstan::write(out, group.id_);
    capstan::write(out, group.name_);
  }
  static UpdateGroup read(Reader& in) {
    UpdateGroup group;
    group.id_ = capstan::read<std::uint32_t>(in);
    group.name_ = capstan::read<std::string>(in);
    return group;
  }
};

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
