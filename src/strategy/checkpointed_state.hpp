// checkpointed_state.hpp -- a named position that a checkpoint holds besides variables, as a dataset of
// splits has.
#pragma once

#include <string>

namespace capstan::strategy {

/// Registered with Strategy::add_state. Used by the thread that made the strategy.
class CheckpointedState {
 public:
  virtual ~CheckpointedState() = default;

  /// Waits until the work that it is about has ended, and lets none begin until release(). Throws the error
  /// of that work; it is released then.
  virtual void hold() = 0;
  virtual void release() noexcept = 0;
  /// A JSON value.
  virtual std::string position() const = 0;
  /// Throws Error when restore() would; changes nothing.
  virtual void check(const std::string& position) const = 0;
  virtual void restore(const std::string& position) = 0;
};

}  // namespace capstan::strategy
