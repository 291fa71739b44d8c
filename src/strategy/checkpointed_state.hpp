// checkpointed_state.hpp -- state other than variables that checkpoints contain, such as the read position of
// a split dataset.
#pragma once

#include <string>

namespace capstan::strategy {

/// Registered with StateRegistry::add. Used by the thread that made the strategy.
class CheckpointedState {
 public:
  virtual ~CheckpointedState() = default;

  /// Blocks until the work that changes the position has ended, and prevents new work until release(). If the
  /// work failed, releases the hold and throws its error.
  virtual void hold() = 0;
  virtual void release() noexcept = 0;
  /// Returns a JSON value.
  virtual std::string position() const = 0;
  /// Throws the Error that restore(position) would throw. Changes nothing.
  virtual void check(const std::string& position) const = 0;
  virtual void restore(const std::string& position) = 0;
};

}  // namespace capstan::strategy
