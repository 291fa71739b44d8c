// create_once.cpp -- finds the strategy, and lets one replica create the variable for all.
#include "strategy/create_once.hpp"

#include "capstan/error.hpp"
#include "strategy/merge_changes.hpp"

namespace capstan::strategy {

Strategy& strategy_of_new(const std::string& variable) {
  if (Strategy* strategy = Strategy::current(); strategy != nullptr) return *strategy;
  const Context* context = Context::current_or_null();
  if (context != nullptr && context->runtime().self().role != Role::coordinator) {
    throw Error(Code::failed_precondition, "variable \"" + variable + "\" is created on " +
                                               context->runtime().self().name() +
                                               "; variables are created on the coordinator");
  }
  return Strategy::of_this_process();
}

std::shared_ptr<const BoundVariable> create_once(
    const std::string& name,
    const std::function<std::shared_ptr<const BoundVariable>(VariableCreator&)>& create) {
  const auto make = [&] { return create(strategy_of_new(name).variable_creator()); };
  if (!among_replicas()) return make();
  return std::static_pointer_cast<const BoundVariable>(
      make_once("the creation of variable \"" + name + "\"", make));
}

}  // namespace capstan::strategy
