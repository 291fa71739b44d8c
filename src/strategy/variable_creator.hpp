// variable_creator.hpp -- creates a variable: checks, shards, first values.
#pragma once

#include <memory>
#include <string>

#include "capstan/strategy.hpp"
#include "cluster/runtime.hpp"
#include "strategy/current_restore_point.hpp"
#include "strategy/ps_contents.hpp"
#include "strategy/shard_creator.hpp"
#include "strategy/shard_placement.hpp"
#include "strategy/variable_registry.hpp"

namespace capstan::strategy {

/// Used by the thread that made the strategy.
class VariableCreator {
 public:
  /// The parts of a strategy that a new variable concerns. All outlive this object.
  struct Services {
    cluster::Runtime& runtime;
    Context& context;
    const Recovery& recovery;
    PsContents& contents;
    CurrentRestorePoint& restore_point;
    VariableRegistry& variables;
  };
  /// `on_coordinator`: variables are created outside of every scope, where no other rank reaches them.
  VariableCreator(const Services& services, const StrategyOptions& options, bool on_coordinator);

  /// `shape` is null if the initial value has one. The first values come from the restored checkpoint if it
  /// has the variable. Throws Error: invalid_argument, already_exists, failed_precondition (the variable
  /// differs from the checkpoint's), and what ShardCreator::create throws.
  std::shared_ptr<const BoundVariable> create(const std::string& name, DType dtype, const Shape* shape,
                                              const detail::AnyInitialValue& initial,
                                              const VariableOptions& options);

  /// Creates a dynamic table of rows of `dim` elements. Throws Error: the same, and unimplemented.
  std::shared_ptr<const BoundVariable> create_table(const std::string& name, DType dtype, std::int64_t dim,
                                                    const Initializer& initial, const TableOptions& options);

  ShardPlacement& placement() noexcept { return placement_; }

 private:
  protocol::VariableDescriptor describe(const std::string& name, DType dtype, const Shape& shape,
                                        const VariableOptions& options) const;
  void check_new(const std::string& name, const Shape& shape) const;
  std::shared_ptr<const BoundVariable> add(protocol::VariableDescriptor descriptor,
                                           ShardCreator::Created created);
  void fill(const protocol::VariableDescriptor& descriptor, const ShardCreator::Created& created,
            const detail::AnyInitialValue& initial, const detail::WholeValue& value);

  Services services_;
  ShardMemory default_memory_;
  std::optional<DType> default_communication_;  // of float variables
  bool default_int8_lookups_;                   // of float variables
  bool on_coordinator_;
  ShardPlacement placement_;
  ShardCreator shards_;
};

}  // namespace capstan::strategy
