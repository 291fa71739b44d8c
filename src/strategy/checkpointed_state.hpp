// checkpointed_state.hpp -- a position that checkpoints contain beside variables, such as that of a split
// dataset.
#pragma once

#include <string>

namespace capstan::strategy {

/// Registered with StateRegistry::add. Used by the thread that made the strategy.
class CheckpointedState {
 public:
  virtual ~CheckpointedState() = default;

  /// Blocks until the work that moves the position has ended; no other begins before release(). Throws the
  /// error of that work, after releasing it.
  virtual void hold() = 0;
  virtual void release() noexcept = 0;
  /// Returns a JSON value.
  virtual std::string position() const = 0;
  /// Throws Error if restore() would, without changing anything.
  virtual void check(const std::string& position) const = 0;
  virtual void restore(const std::string& position) = 0;
};

}  // namespace capstan::strategy
