// state_registry.cpp -- weak references by name.
#include "strategy/state_registry.hpp"

#include <utility>

#include "base/name.hpp"
#include "capstan/error.hpp"

namespace capstan::strategy {

void StateRegistry::add(const std::string& name, const std::shared_ptr<CheckpointedState>& state) {
  check_name("dataset of splits", name);
  std::weak_ptr<CheckpointedState>& entry = states_[name];
  if (!entry.expired()) {
    throw Error(Code::already_exists,
                "dataset of splits \"" + name + "\" already exists; choose another name");
  }
  restore_point_.restore(name, *state);
  entry = state;
}

std::map<std::string, std::shared_ptr<CheckpointedState>> StateRegistry::all() const {
  std::map<std::string, std::shared_ptr<CheckpointedState>> alive;
  for (const auto& [name, state] : states_) {
    if (auto locked = state.lock()) alive.emplace(name, std::move(locked));
  }
  return alive;
}

}  // namespace capstan::strategy
