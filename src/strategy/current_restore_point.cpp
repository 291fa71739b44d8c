// current_restore_point.cpp -- each value of the checkpoint is taken once.
#include "strategy/current_restore_point.hpp"

#include <utility>

namespace capstan::strategy {

void CurrentRestorePoint::set(std::unique_ptr<RestorePoint> point, PsContents::Checkpoint checkpoint) {
  point_ = std::move(point);
  if (!point_->complete()) return contents_.forget_checkpoint();
  checkpoint.restored = true;
  contents_.set_checkpoint(std::move(checkpoint));
}

void CurrentRestorePoint::require_fit(const protocol::VariableDescriptor& variable) const {
  if (point_ && point_->has_variable(variable.name)) point_->require_fit(variable);
}

bool CurrentRestorePoint::fill(const protocol::VariableDescriptor& variable) {
  if (!point_) return false;
  if (!point_->has_variable(variable.name)) {
    point_->lacks_variable(variable.name);
    return false;
  }
  point_->fill(variable);
  return true;
}

void CurrentRestorePoint::note_created(std::uint32_t variable) {
  if (point_ && point_->complete()) contents_.extend_checkpoint(variable);
}

std::optional<std::int64_t> CurrentRestorePoint::counter(const std::string& name) {
  return point_ ? point_->counter(name) : std::nullopt;
}

void CurrentRestorePoint::note_counter_restored(const std::string& name, const PsContents::Counter& counter) {
  point_->note_counter_restored(name);
  contents_.extend_checkpoint(counter);
}

void CurrentRestorePoint::restore(const std::string& name, CheckpointedState& state) {
  const auto position = point_ ? point_->position(name) : std::nullopt;
  if (!position) return;
  state.check(*position);
  state.restore(*position);
  point_->note_position_restored(name);
}

}  // namespace capstan::strategy
