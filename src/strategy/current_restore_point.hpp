// current_restore_point.hpp -- gives variables, counters and states that the program creates after a restore
// their values from the checkpoint.
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

/// Has no values until a checkpoint is restored. Also keeps the checkpoint in `contents` up to date, from
/// which a spare would restore a ps. Used by the thread that made the strategy.
class CurrentRestorePoint {
 public:
  explicit CurrentRestorePoint(PsContents& contents) : contents_(contents) {}

  /// Replaces the restore point. Spares restore from `checkpoint` if the restore point is complete, and from
  /// no checkpoint otherwise.
  void set(std::unique_ptr<RestorePoint> point, PsContents::Checkpoint checkpoint);
  /// Returns the restore point, or null if no checkpoint was restored.
  const RestorePoint* get() const noexcept { return point_.get(); }

  /// Throws Error(failed_precondition) if the checkpoint has a different variable of this name.
  void require_fit(const protocol::VariableDescriptor& variable) const;
  /// Gives a new variable its values; returns false if the checkpoint does not have it. Throws what
  /// RestorePoint::fill throws.
  bool fill(const protocol::VariableDescriptor& variable);
  /// Records that the variable with this number was created.
  void note_created(std::uint32_t variable);

  /// Returns the initial value of a new counter; nullopt if the checkpoint does not have the counter.
  std::optional<std::int64_t> counter(const std::string& name);
  /// Records that the new counter was set to its value from the checkpoint.
  void note_counter_restored(const std::string& name, const PsContents::Counter& counter);

  /// Restores the position of a new state, if the checkpoint has one.
  void restore(const std::string& name, CheckpointedState& state);

 private:
  PsContents& contents_;
  std::unique_ptr<RestorePoint> point_;
};

}  // namespace capstan::strategy
