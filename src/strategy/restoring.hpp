// restoring.hpp -- variables from a checkpoint: whether they fit, and what is left for those that are made
// later.
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

namespace capstan::strategy {

class Strategy;

/// Names of variables in a checkpoint, by their names here, where these differ.
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
void check_on_ps(Strategy& strategy, const protocol::RestorePlan& plan);
/// Every ps reads. When this fails, variables are partly what they were. Returns the counters as they are
/// then.
PsContents::Counters read_on_ps(Strategy& strategy, const protocol::RestorePlan& plan);

/// The checkpoint that was restored last, for what is made after that. Used by the thread that made the
/// strategy.
class Restored {
 public:
  Restored(io::CheckpointReader reader, Renamed names);

  const io::CheckpointReader& reader() const noexcept { return reader_; }
  const Renamed& names() const noexcept { return names_; }

  /// A variable has its values from it.
  void took_variable(const std::string& here);
  /// A variable that it does not have.
  void lacks(const std::string& here) { lacking_.insert(here); }
  void took_position(const std::string& name) { positions_.erase(name); }
  void took_counter(const std::string& name) { counters_.erase(name); }
  void lacks_counter(const std::string& name) { lacking_counters_.insert(name); }

  bool has(const std::string& here) const;
  /// Throws Error(failed_precondition) that lists the differences.
  void require_fit(const protocol::VariableDescriptor& variable) const;
  /// Fills a variable that was just made. Throws Error: data_loss, unavailable, deadline_exceeded.
  void fill(Strategy& strategy, const protocol::VariableDescriptor& variable);
  /// Of a dataset that nobody had when it was restored.
  std::optional<std::string> position(const std::string& name) const;

  std::optional<std::int64_t> counter(const std::string& name) const;

  /// Every variable here so far has come from it, under its own name: a ps could be filled from it anew.
  bool whole() const noexcept { return whole_ && lacking_.empty(); }
  /// In it and nowhere here, one after the other in words: variable "w".
  std::vector<std::string> unmatched() const;
  /// Here and not in it.
  std::vector<std::string> lacking() const;

 private:
  io::CheckpointReader reader_;
  Renamed names_;
  std::set<std::string> left_;       // names there
  std::set<std::string> positions_;  // names of those that are left
  std::set<std::string> counters_;   // likewise
  std::set<std::string> lacking_;
  std::set<std::string> lacking_counters_;
  bool whole_ = true;
};

}  // namespace capstan::strategy
