// variable_options.hpp -- options of a variable, and update groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "capstan/detail/export.hpp"
#include "capstan/dtype.hpp"
#include "capstan/optimizers.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

/// Pushes are applied on arrival; workers do not wait for each other.
struct Asynchronous {};

/// Pushes are applied on arrival; a worker more than `bound` steps ahead of the slowest waits for it (Ho et
/// al., "More effective distributed ML via a stale synchronous parallel parameter server", NIPS 2013).
struct StaleSynchronous {
  std::int64_t bound = 0;
};

/// The workers' pushes of a step are summed in the order of worker indices, or averaged. The result is
/// applied once, when all workers except `backup_workers` of them have ended the step. Pushes of slower
/// workers for this step are dropped (Chen et al., "Revisiting distributed synchronous SGD", 2016).
struct Synchronous {
  bool average = true;
  int backup_workers = 0;
};

using Synchronization = std::variant<Asynchronous, StaleSynchronous, Synchronous>;

/// Variables for which workers synchronize their steps. Made on the coordinator, in a strategy's scope; set
/// as VariableOptions::group; passed to closures as an argument. Every worker of the cluster takes part until
/// it leaves or dies. docs/consistency.md states the guarantees of each mode.
class CAPSTAN_API UpdateGroup {
 public:
  /// Throws Error: failed_precondition outside of a scope; invalid_argument for a negative bound, for so many
  /// backup workers that no worker is left to wait for, or for a name that is not valid for a variable.
  UpdateGroup(std::string name, const Synchronization& synchronization);

  /// In a closure: ends this worker's step. Blocks until its earlier pushes have been applied or dropped and
  /// the mode lets the worker continue. Returns the number of steps that the worker has ended, including
  /// steps that other workers completed without it. Throws Error: deadline_exceeded naming the workers that
  /// are behind, unavailable.
  std::int64_t end_step() const;
  /// In a closure: other workers no longer wait for this one, until it calls end_step again. A closure that
  /// ends steps should call it last, so that closures with more steps can continue.
  void leave() const;
  /// On the coordinator, while no closure of the group runs: all live workers take part again.
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

/// How concurrent assignments and scatter operations by the replicas of one worker, inside run, are combined.
/// All replicas must make the call. Assignments must be to the same rows; in scatter operations each replica
/// names its own rows. A sum applies the scatter operations of all replicas, in replica order; a mean does
/// the same with values divided by the number of replicas. Both support only add, sub, mul and div; others
/// are Error(unimplemented). Bools have no sum and integers no mean: Error(invalid_argument). Workers always
/// update asynchronously. Sent over the wire: add at the end, never renumber.
enum class VariableAggregation : std::uint8_t {
  none = 0,  ///< Error(invalid_argument) with more than one replica
  sum = 1,
  mean = 2,
  only_first_replica = 3,  ///< applies replica 0's call only
};

/// Accepted for compatibility with TensorFlow. A variable has one copy, on the ps, so all values are
/// equivalent.
/// Sent over the wire: add at the end, never renumber.
enum class VariableSynchronization : std::uint8_t { automatic = 0, none = 1, on_write = 2, on_read = 3 };

/// Memory in which a ps stores its part of a variable: values and optimizer slots.
/// Sent over the wire: add at the end, never renumber.
enum class ShardMemory : std::uint8_t {
  host = 0,
  /// Memory of the ps's GPU, which applies the pushes. Reads into host memory are served by the ps, never
  /// mapped.
  device = 1,
};

/// Each worker sums the gradients of frequently pushed rows in its own memory, and pushes the sums. This
/// takes load off the ps if a small part of the rows gets most of the gradients, such as frequent words.
struct CombinePushes {
  /// Number of rows whose sums a worker holds, up to 2^24. A worker rounds it up to a power of two, and
  /// allocates that many rows at its first push.
  std::uint32_t rows = 4096;
  /// A worker sends the sums after this number of pushes to the variable, and at the end of the function.
  /// docs/consistency.md lists the calls that send them earlier.
  std::uint32_t pushes = 16;
  bool operator==(const CombinePushes&) const = default;
};

struct VariableOptions {
  /// Applied by the ps to pushes. None: SGD{}; for integers SGD{1}, since they support only SGD with an
  /// integer learning rate.
  std::optional<Optimizer> optimizer = {};
  /// Marks the variable for training; pushes are accepted in any case.
  bool trainable = true;
  VariableAggregation aggregation = VariableAggregation::none;
  VariableSynchronization synchronization = VariableSynchronization::automatic;
  /// Synchronizes the workers that push to the variable; none: asynchronous.
  std::optional<UpdateGroup> group = {};
  /// None: StrategyOptions::memory. Creating the variable throws Error: failed_precondition if a ps has no
  /// GPU, resource_exhausted if the GPU's memory is insufficient; the ps remains usable.
  std::optional<ShardMemory> memory = {};
  /// Rounds updates to float16, bfloat16 and int8 rows stochastically, so that small updates take effect on
  /// average. A float variable with communication_dtype bfloat16 rounds the gradients that it sends
  /// stochastically: the expected value of a sent gradient is the gradient. Error(invalid_argument) for other
  /// variables.
  bool stochastic_rounding = false;
  /// The ps stores rows as 8-bit integers with a minimum and a maximum for each row: 8 bytes and one for each
  /// element, instead of four for each. Slots of optimizers stay float. An update reads the row as floats,
  /// applies the optimizer, and rounds the result to 255 steps between the new extremes. Zeros and other
  /// elements are exact only on a step or as extremes, also the zeros of FTRL with l1. An element without
  /// gradient can change when the extremes of its row change.
  ///
  /// Assignments and the scatter operations add, sub, mul, div, min and max always round to nearest. Repeated
  /// additions of less than half a step are lost even with stochastic_rounding.
  ///
  /// Reads return floats and come from the ps: clients do not map the rows. Lookups and pulls return the
  /// stored rows, whatever communication_dtype is; gradients follow it. Only for float variables in host
  /// memory with rows of at least 3 elements; otherwise Error(invalid_argument).
  bool int8_rows = false;
  /// None: every push is sent at once. Otherwise gradients of some rows take effect later, and an optimizer
  /// other than SGD applies the sum of several gradients once. Only for float, double and integers; otherwise
  /// Error(invalid_argument). docs/consistency.md describes which pushes are combined, and when this is safe.
  std::optional<CombinePushes> combine_pushes = {};
  /// The dtype of gradients and rows that cross a network; none: that of the variable. A float variable may
  /// have bfloat16, which halves them: they are rounded to 8 significant bits, and the ps still stores and
  /// updates float. Assignments, dense pulls by RMA, rows and rings that a worker maps, reads of shards in
  /// GPU memory and of int8_rows, and transfers between an adapter and a GPU are exact. Other dtypes are
  /// Error(invalid_argument).
  std::optional<DType> communication_dtype = {};
  /// Sends rows that `lookup` reads through a network as 8-bit integers, with a minimum and a maximum for
  /// each row: 8 bytes and one for each element. The largest error of an element is (maximum - minimum) / 510
  /// of its row; a row with an infinity or NaN is read as NaN. Rows for which this is not smaller are sent in
  /// communication_dtype, as are pulls and gradients. Reads that are exact with communication_dtype remain
  /// so. None: StrategyOptions::int8_lookups for float variables, otherwise false. Other dtypes are
  /// Error(invalid_argument).
  std::optional<bool> int8_lookups = {};
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
