// restored_checkpoint.cpp -- compares a checkpoint with the program, plans the restore, and runs it on all
// ps.
#include "checkpoint/restored_checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/log.hpp"
#include "capstan/serialize.hpp"
#include "protocol/table_layout.hpp"
#include "strategy/disk_timeout.hpp"
#include "strategy/ps_calls.hpp"
#include "strategy/strategy.hpp"

namespace capstan::checkpoint {
namespace {

template <class T>
std::vector<std::vector<std::byte>> packed(const std::vector<T>& requests) {
  std::vector<std::vector<std::byte>> out;
  for (const T& request : requests) out.push_back(to_bytes(request));
  return out;
}

void list_differences_of_one(const io::VariableInfo& saved, const protocol::VariableDescriptor& current,
                             std::vector<std::string>& lines) {
  const std::string name = saved.name == current.name
                               ? fmt::format("variable \"{}\"", current.name)
                               : fmt::format("variable \"{}\" (saved as \"{}\")", current.name, saved.name);
  if (saved.dtype != current.dtype) {
    lines.push_back(fmt::format("{}: found dtype {}, expected {}", name, to_string(saved.dtype),
                                to_string(current.dtype)));
  }
  std::vector<std::uint64_t> expected = protocol::stored_shape(current.shape);
  if (current.table && !saved.shape.empty()) expected.front() = saved.shape.front();  // any number of rows
  if (saved.shape != expected) {
    lines.push_back(fmt::format("{}: found shape ({}), expected ({})", name, fmt::join(saved.shape, ", "),
                                fmt::join(expected, ", ")));
  }
  std::vector<std::string> slots;
  for (const io::SlotInfo& slot : saved.slots) {
    if (current.table && (slot.name == io::kTableKeys || slot.name == io::kTableStates)) continue;
    slots.push_back(slot.name);
    if (slot.shape == saved.shape && slot.dtype == protocol::slot_dtype(current.dtype)) continue;
    lines.push_back(
        fmt::format("{}: found slot {} of dtype {} and shape ({}), expected the variable's dtype and shape",
                    name, slot.name, to_string(slot.dtype), fmt::join(slot.shape, ", ")));
  }
  if (slots != protocol::slots_of(current.optimizer.kind)) {
    lines.push_back(fmt::format("{}: found optimizer {}, expected {}", name, saved.optimizer,
                                protocol::describe(current.optimizer)));
  }
}

}  // namespace

const std::string& saved_name(const Renamed& names, const std::string& name) {
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

const io::VariableInfo* find_variable(const io::CheckpointReader& reader, const std::string& saved_name) {
  const auto& saved = reader.variables();  // sorted by name
  const auto found =
      std::lower_bound(saved.begin(), saved.end(), saved_name,
                       [](const io::VariableInfo& v, const std::string& name) { return v.name < name; });
  return found == saved.end() || found->name != saved_name ? nullptr : &*found;
}

std::vector<const io::VariableInfo*> find_saved(const io::CheckpointReader& reader,
                                                const std::string& saved_name) {
  if (const io::VariableInfo* variable = find_variable(reader, saved_name)) return {variable};
  return io::saved_table_parts(reader, saved_name);
}

void list_differences(const std::vector<const io::VariableInfo*>& saved,
                      const protocol::VariableDescriptor& current, std::vector<std::string>& lines) {
  for (const io::VariableInfo* one : saved) {
    if (io::is_table_part(*one) == current.table) {
      list_differences_of_one(*one, current, lines);
    } else {
      lines.push_back(fmt::format("\"{}\": found a {}, expected a {}", current.name,
                                  current.table ? "variable" : "dynamic table",
                                  current.table ? "dynamic table" : "variable"));
    }
  }
}

void log_optimizer_differences(const std::vector<const io::VariableInfo*>& all,
                               const protocol::VariableDescriptor& current) {
  const io::VariableInfo& saved = *all.front();
  if (const auto rate = saved.learning_rate_of(0, current.rows()); rate) {
    const bool equal = std::all_of(saved.shards.begin(), saved.shards.end(),
                                   [&](const io::ShardSteps& shard) { return shard.learning_rate == rate; });
    log::info(
        "variable \"{}\" continues with learning rate {}, which was set before the checkpoint{}",
        current.name, *rate,
        equal ? ""
              : "; its shards had different rates: each gets the rate of the first saved shard it overlaps");
  }
  const std::string optimizer = protocol::describe(current.optimizer);
  if (saved.optimizer == optimizer) return;
  log::info("variable \"{}\" was trained with {} before the checkpoint and continues with {}", current.name,
            saved.optimizer, optimizer);
}

void add_to_plan(protocol::RestorePlan& plan, const protocol::VariableDescriptor& variable,
                 const std::string& saved_name) {
  const std::vector<std::string> slots = protocol::slots_of(variable.optimizer.kind);
  for (std::size_t s = 0; s < variable.shards.size(); ++s) {
    const protocol::ShardLocation& location = variable.shards[s];
    const protocol::ShardSource shard{
        variable.id, static_cast<std::uint32_t>(s), saved_name, location.first_row, location.rows, slots};
    if (variable.table) {
      plan.fill_table(location.ps, shard, variable.shards.size());
    } else {
      plan.fill(location.ps, shard);
    }
  }
}

void check_on_ps(strategy::Strategy& strategy, const protocol::RestorePlan& plan) {
  const auto requests = packed(plan.checks());
  const auto client = strategy.context().use_client();
  client->connections().retry([&] {
    strategy::ask_each_ps(*client, transport::kCheckRestore, requests,
                          strategy::disk_timeout(strategy, plan.bytes()),
                          "verify the checksums of its part of a checkpoint");
  });
}

strategy::PsContents::Counters read_on_ps(strategy::Strategy& strategy, const protocol::RestorePlan& plan) {
  const auto requests = packed(plan.parts());
  return strategy.counters().read_before([&] {
    strategy::ask_each_ps(*strategy.context().use_client(), transport::kRestorePart, requests,
                          strategy::disk_timeout(strategy, plan.bytes()), "read its part of a checkpoint");
  });
}

RestoredCheckpoint::RestoredCheckpoint(strategy::Strategy& strategy, io::CheckpointReader reader,
                                       Renamed names)
    : strategy_(strategy), reader_(std::move(reader)), names_(std::move(names)) {
  for (const io::VariableInfo& variable : reader_.variables()) variables_.insert(variable.name);
  for (const auto& [name, position] : reader_.positions()) positions_.insert(name);
  for (const auto& [name, value] : reader_.counters()) counters_.insert(name);
}

void RestoredCheckpoint::note_variable_restored(const std::string& name) {
  const std::string& name_in_checkpoint = saved_name(names_, name);
  for (const io::VariableInfo* saved : find_saved(reader_, name_in_checkpoint)) variables_.erase(saved->name);
  if (name_in_checkpoint != name) own_names_ = false;
}

bool RestoredCheckpoint::has_variable(const std::string& name) const {
  return !find_saved(reader_, saved_name(names_, name)).empty();
}

void RestoredCheckpoint::require_fit(const protocol::VariableDescriptor& variable) const {
  std::vector<std::string> lines;
  list_differences(find_saved(reader_, saved_name(names_, variable.name)), variable, lines);
  if (lines.empty()) return;
  throw Error(Code::failed_precondition,
              fmt::format("the restored checkpoint {} does not match a new variable: {}",
                          reader_.directory().string(), fmt::join(lines, "; ")));
}

void RestoredCheckpoint::fill(const protocol::VariableDescriptor& variable) {
  const std::string& name_in_checkpoint = saved_name(names_, variable.name);
  std::error_code error;
  if (!std::filesystem::exists(reader_.directory(), error)) {
    throw Error(
        Code::not_found,
        fmt::format(
            "cannot restore variable \"{}\": checkpoint {} was deleted after it had been restored; create "
            "variables before saving other checkpoints, or keep more checkpoints",
            variable.name, reader_.directory().string()));
  }
  protocol::RestorePlan plan(reader_, strategy_.runtime()->count(Role::ps));
  add_to_plan(plan, variable, name_in_checkpoint);
  check_on_ps(strategy_, plan);
  (void)read_on_ps(strategy_, plan);
  log_optimizer_differences(find_saved(reader_, name_in_checkpoint), variable);
  note_variable_restored(variable.name);
}

std::optional<std::string> RestoredCheckpoint::position(const std::string& name) const {
  return positions_.contains(name) ? std::optional(reader_.positions().at(name)) : std::nullopt;
}

std::optional<std::int64_t> RestoredCheckpoint::counter(const std::string& name) {
  if (counters_.contains(name)) return reader_.counters().at(name);
  lacking_counters_.insert(name);
  return std::nullopt;
}

std::vector<std::string> RestoredCheckpoint::unmatched() const {
  std::vector<std::string> names;
  for (const std::string& name : variables_) names.push_back(fmt::format("variable \"{}\"", name));
  for (const std::string& name : counters_) names.push_back(fmt::format("counter \"{}\"", name));
  for (const std::string& name : positions_) names.push_back(fmt::format("the position of \"{}\"", name));
  return names;
}

std::vector<std::string> RestoredCheckpoint::lacking() const {
  std::vector<std::string> names;
  for (const std::string& name : lacking_) names.push_back(fmt::format("variable \"{}\"", name));
  for (const std::string& name : lacking_counters_) names.push_back(fmt::format("counter \"{}\"", name));
  return names;
}

}  // namespace capstan::checkpoint
