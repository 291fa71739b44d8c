// state_registry.hpp -- the named positions that checkpoints contain.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "strategy/checkpointed_state.hpp"
#include "strategy/current_restore_point.hpp"

namespace capstan::strategy {

/// Does not own the states. Used by the thread that made the strategy.
class StateRegistry {
 public:
  explicit StateRegistry(CurrentRestorePoint& restore_point) : restore_point_(restore_point) {}

  /// Checkpoints contain the state from now on, as long as it lives; it takes its position from the restored
  /// checkpoint. Throws Error(already_exists) if a state of this name lives.
  void add(const std::string& name, const std::shared_ptr<CheckpointedState>& state);
  /// Returns the states that live, by name.
  std::map<std::string, std::shared_ptr<CheckpointedState>> all() const;

 private:
  CurrentRestorePoint& restore_point_;
  std::map<std::string, std::weak_ptr<CheckpointedState>> states_;
};

}  // namespace capstan::strategy
