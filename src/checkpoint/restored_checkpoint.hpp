// restored_checkpoint.hpp -- the last restored checkpoint, from which later variables are restored.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "io/hdf5/checkpoint_reader.hpp"
#include "protocol/descriptor.hpp"
#include "protocol/restore_plan.hpp"
#include "strategy/ps_contents.hpp"
#include "strategy/restore_point.hpp"
#include "strategy/strategy.hpp"

namespace capstan::checkpoint {

/// Maps names of variables in the program to their names in the checkpoint, where the two differ.
using Renamed = std::map<std::string, std::string>;
const std::string& saved_name(const Renamed& names, const std::string& name);

/// Returns null if the checkpoint has no such variable.
const io::VariableInfo* find_variable(const io::CheckpointReader& reader, const std::string& saved_name);

/// Returns the variable of a checkpoint with this name, or the parts of the dynamic table of this name. Empty
/// if the checkpoint has neither.
std::vector<const io::VariableInfo*> find_saved(const io::CheckpointReader& reader,
                                                const std::string& saved_name);

/// Adds a line for each difference between a variable, or a dynamic table, and its saved counterpart.
void list_differences(const std::vector<const io::VariableInfo*>& saved,
                      const protocol::VariableDescriptor& current, std::vector<std::string>& lines);
/// Logs differences between the saved optimizer and the program's. A learning rate that was set before the
/// checkpoint continues; all other parameters are the program's. REQUIRES: `saved` is not empty.
void log_optimizer_differences(const std::vector<const io::VariableInfo*>& saved,
                               const protocol::VariableDescriptor& current);

void add_to_plan(protocol::RestorePlan& plan, const protocol::VariableDescriptor& variable,
                 const std::string& saved_name);
/// Has every ps verify the checksums of its part. Throws Error: data_loss, and the errors of ask_each_ps.
void check_on_ps(strategy::Strategy& strategy, const protocol::RestorePlan& plan);
/// Has every ps read its part. After a failure, some variables are restored and others are not. Returns the
/// counters after the restore.
strategy::PsContents::Counters read_on_ps(strategy::Strategy& strategy, const protocol::RestorePlan& plan);

/// The last restored checkpoint. Used by the thread that created the strategy.
class RestoredCheckpoint final : public strategy::RestorePoint {
 public:
  RestoredCheckpoint(strategy::Strategy& strategy, io::CheckpointReader reader, Renamed names);

  const io::CheckpointReader& reader() const noexcept { return reader_; }
  /// Records that a variable was restored from the checkpoint.
  void note_variable_restored(const std::string& name);

  bool has_variable(const std::string& name) const override;
  void require_fit(const protocol::VariableDescriptor& variable) const override;
  void fill(const protocol::VariableDescriptor& variable) override;
  void lacks_variable(const std::string& name) override { lacking_.insert(name); }
  std::optional<std::int64_t> counter(const std::string& name) override;
  void note_counter_restored(const std::string& name) override { counters_.erase(name); }
  std::optional<std::string> position(const std::string& name) const override;
  void note_position_restored(const std::string& name) override { positions_.erase(name); }
  bool complete() const noexcept override { return own_names_ && lacking_.empty(); }
  std::vector<std::string> unmatched() const override;
  std::vector<std::string> lacking() const override;
  std::string path() const override { return reader_.directory().string(); }

 private:
  strategy::Strategy& strategy_;
  io::CheckpointReader reader_;
  Renamed names_;
  std::set<std::string> variables_;  // not restored yet; names in the checkpoint
  std::set<std::string> positions_;  // not restored yet
  std::set<std::string> counters_;   // not restored yet
  std::set<std::string> lacking_;
  std::set<std::string> lacking_counters_;
  bool own_names_ = true;  // whether all variables so far have the same name in the checkpoint
};

}  // namespace capstan::checkpoint
