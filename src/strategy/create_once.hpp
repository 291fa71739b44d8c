// create_once.hpp -- creates a variable in the strategy of the calling thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "strategy/context.hpp"
#include "strategy/strategy.hpp"

namespace capstan::strategy {

/// Returns the strategy to which a new variable belongs: of the open scope, or of this process outside of all
/// scopes. Throws Error(failed_precondition) on a rank other than the coordinator.
Strategy& strategy_of_new(const std::string& variable);

/// Creates a variable or a dynamic table with `create`. Inside `run`, all replicas create one together.
std::shared_ptr<const BoundVariable> create_once(
    const std::string& name,
    const std::function<std::shared_ptr<const BoundVariable>(VariableCreator&)>& create);

}  // namespace capstan::strategy
