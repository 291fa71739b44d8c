// current_restore_point.hpp -- applies the checkpoint that was restored last to what the program creates
// later.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "protocol/descriptor.hpp"
#include "strategy/checkpointed_state.hpp"
#include "strategy/ps_contents.hpp"
#include "strategy/restore_point.hpp"

namespace capstan::strategy {

/// Does nothing, and has no values, until a checkpoint is restored. Keeps the checkpoint that a spare would
/// load in `contents` up to date. Used by the thread that made the strategy.
class CurrentRestorePoint {
 public:
  explicit CurrentRestorePoint(PsContents& contents) : contents_(contents) {}

  /// Replaces the restore point. `checkpoint` is noted for spares if the restore point is complete; otherwise
  /// no checkpoint is.
  void set(std::unique_ptr<RestorePoint> point, PsContents::Checkpoint checkpoint);
  /// Returns null if no checkpoint was restored.
  const RestorePoint* get() const noexcept { return point_.get(); }

  /// Throws Error(failed_precondition) if the checkpoint has another variable of this name.
  void require_fit(const protocol::VariableDescriptor& variable) const;
  /// Gives a new variable its values; returns false if the checkpoint does not have it. Throws what
  /// RestorePoint::fill throws.
  bool fill(const protocol::VariableDescriptor& variable);
  /// The variable with this number now exists.
  void note_created(std::uint32_t variable);

  /// Returns the value that a new counter starts with.
  std::optional<std::int64_t> counter(const std::string& name);
  /// The counter was set to that value.
  void took_counter(const std::string& name, const PsContents::Counter& counter);

  /// Restores the position of a new state, if the checkpoint has one.
  void restore(const std::string& name, CheckpointedState& state);

 private:
  PsContents& contents_;
  std::unique_ptr<RestorePoint> point_;
};

}  // namespace capstan::strategy
