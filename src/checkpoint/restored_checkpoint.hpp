// restored_checkpoint.hpp -- which variables a checkpoint fits, and what of it is left for later ones.
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

/// Names of variables in a checkpoint by their names in the program, where these differ.
using Renamed = std::map<std::string, std::string>;
const std::string& name_there(const Renamed& names, const std::string& here);

/// Null when the checkpoint has no such variable.
const io::VariableInfo* find_variable(const io::CheckpointReader& reader, const std::string& there);

/// Adds a line for each thing in which a variable is not what the checkpoint has under the name `there`.
void list_differences(const io::VariableInfo& there, const protocol::VariableDescriptor& here,
                      std::vector<std::string>& lines);
/// Says in the log when the optimizer's numbers are others: those of the program count.
void log_other_optimizer(const io::VariableInfo& there, const protocol::VariableDescriptor& here);

void add_to_plan(protocol::RestorePlan& plan, const protocol::VariableDescriptor& variable,
                 const std::string& there);
/// Every ps compares its part of what is to be read. Throws Error: data_loss, and what ask_each_ps throws.
void check_on_ps(strategy::Strategy& strategy, const protocol::RestorePlan& plan);
/// Every ps reads. When this fails, variables are partly what they were. Returns the counters as they are
/// then.
strategy::PsContents::Counters read_on_ps(strategy::Strategy& strategy, const protocol::RestorePlan& plan);

/// The checkpoint that was restored last.
class RestoredCheckpoint final : public strategy::RestorePoint {
 public:
  RestoredCheckpoint(strategy::Strategy& strategy, io::CheckpointReader reader, Renamed names);

  const io::CheckpointReader& reader() const noexcept { return reader_; }
  /// A variable has its values from it.
  void took_variable(const std::string& name);

  bool has_variable(const std::string& name) const override;
  void require_fit(const protocol::VariableDescriptor& variable) const override;
  void fill(const protocol::VariableDescriptor& variable) override;
  void lacks_variable(const std::string& name) override { lacking_.insert(name); }
  std::optional<std::int64_t> counter(const std::string& name) override;
  void took_counter(const std::string& name) override { counters_.erase(name); }
  std::optional<std::string> position(const std::string& name) const override;
  void took_position(const std::string& name) override { positions_.erase(name); }
  bool complete() const noexcept override { return own_names_ && lacking_.empty(); }
  std::vector<std::string> unmatched() const override;
  std::vector<std::string> lacking() const override;
  std::string path() const override { return reader_.folder().string(); }

 private:
  strategy::Strategy& strategy_;
  io::CheckpointReader reader_;
  Renamed names_;
  std::set<std::string> left_;       // names in the checkpoint that nothing has taken: variables,
  std::set<std::string> positions_;  // positions,
  std::set<std::string> counters_;   // and counters
  std::set<std::string> lacking_;
  std::set<std::string> lacking_counters_;
  bool own_names_ = true;  // every variable so far has the same name in the checkpoint
};

}  // namespace capstan::checkpoint
