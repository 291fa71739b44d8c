// restored_checkpoint.cpp -- comparing, planning, and asking every ps to read.
#include "checkpoint/restored_checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/log.hpp"
#include "capstan/serialize.hpp"
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

}  // namespace

const std::string& name_there(const Renamed& names, const std::string& here) {
  const auto found = names.find(here);
  return found == names.end() ? here : found->second;
}

const io::VariableInfo* find_variable(const io::CheckpointReader& reader, const std::string& there) {
  const auto& saved = reader.variables();  // by name
  const auto found =
      std::lower_bound(saved.begin(), saved.end(), there,
                       [](const io::VariableInfo& v, const std::string& name) { return v.name < name; });
  return found == saved.end() || found->name != there ? nullptr : &*found;
}

void list_differences(const io::VariableInfo& there, const protocol::VariableDescriptor& here,
                      std::vector<std::string>& lines) {
  const std::string name = there.name == here.name
                               ? fmt::format("variable \"{}\"", here.name)
                               : fmt::format("variable \"{}\" (\"{}\" in it)", here.name, there.name);
  if (there.dtype != here.dtype) {
    lines.push_back(
        fmt::format("{} is {} there, {} here", name, to_string(there.dtype), to_string(here.dtype)));
  }
  if (there.shape != protocol::stored_shape(here.shape)) {
    lines.push_back(fmt::format("{} has shape ({}) there, ({}) here", name, fmt::join(there.shape, ", "),
                                fmt::join(here.shape, ", ")));
  }
  std::vector<std::string> slots;
  for (const io::SlotInfo& slot : there.slots) {
    slots.push_back(slot.name);
    if (slot.shape == there.shape && slot.dtype == protocol::slot_dtype(here.dtype)) continue;
    lines.push_back(fmt::format("slot {} of {} is {} of shape ({}) there", slot.name, name,
                                to_string(slot.dtype), fmt::join(slot.shape, ", ")));
  }
  if (slots != protocol::slots_of(here.optimizer.kind)) {
    lines.push_back(fmt::format("{} was trained with {} there, {} here", name, there.optimizer,
                                protocol::describe(here.optimizer)));
  }
}

void log_other_optimizer(const io::VariableInfo& there, const protocol::VariableDescriptor& here) {
  if (const auto rate = there.learning_rate_of(0, here.rows()); rate) {
    const bool all = std::all_of(there.shards.begin(), there.shards.end(),
                                 [&](const io::ShardSteps& shard) { return shard.learning_rate == rate; });
    log::info("variable \"{}\" continues with learning rate {}, which was set before the checkpoint{}",
              here.name, *rate,
              all ? "" : "; its shards had different ones: each takes that of the first that it overlaps");
  }
  const std::string mine = protocol::describe(here.optimizer);
  if (there.optimizer == mine) return;
  log::info("variable \"{}\" was trained with {} until the checkpoint; it goes on with {}", here.name,
            there.optimizer, mine);
}

void add_to_plan(protocol::RestorePlan& plan, const protocol::VariableDescriptor& variable,
                 const std::string& there) {
  const std::vector<std::string> slots = protocol::slots_of(variable.optimizer.kind);
  for (std::size_t s = 0; s < variable.shards.size(); ++s) {
    const protocol::ShardLocation& location = variable.shards[s];
    plan.fill(location.ps,
              {variable.id, static_cast<std::uint32_t>(s), there, location.first_row, location.rows, slots});
  }
}

void check_on_ps(strategy::Strategy& strategy, const protocol::RestorePlan& plan) {
  const auto requests = packed(plan.checks());
  strategy.context().client().connections().retry([&] {
    strategy::ask_each_ps(strategy.context().client(), transport::kCheckRestore, requests,
                          strategy::disk_timeout(strategy, plan.bytes()),
                          "compare its part of a checkpoint with its checksums");
  });
}

strategy::PsContents::Counters read_on_ps(strategy::Strategy& strategy, const protocol::RestorePlan& plan) {
  const auto requests = packed(plan.parts());
  return strategy.counters().read_before([&] {
    strategy::ask_each_ps(strategy.context().client(), transport::kRestorePart, requests,
                          strategy::disk_timeout(strategy, plan.bytes()), "read its part of a checkpoint");
  });
}

RestoredCheckpoint::RestoredCheckpoint(strategy::Strategy& strategy, io::CheckpointReader reader,
                                       Renamed names)
    : strategy_(strategy), reader_(std::move(reader)), names_(std::move(names)) {
  for (const io::VariableInfo& variable : reader_.variables()) left_.insert(variable.name);
  for (const auto& [name, position] : reader_.positions()) positions_.insert(name);
  for (const auto& [name, value] : reader_.counters()) counters_.insert(name);
}

void RestoredCheckpoint::took_variable(const std::string& here) {
  const std::string& there = name_there(names_, here);
  left_.erase(there);
  if (there != here) own_names_ = false;
}

bool RestoredCheckpoint::has_variable(const std::string& here) const {
  return find_variable(reader_, name_there(names_, here)) != nullptr;
}

void RestoredCheckpoint::require_fit(const protocol::VariableDescriptor& variable) const {
  std::vector<std::string> lines;
  list_differences(*find_variable(reader_, name_there(names_, variable.name)), variable, lines);
  if (lines.empty()) return;
  throw Error(Code::failed_precondition,
              fmt::format("checkpoint {}, which was restored before, does not fit: {}",
                          reader_.folder().string(), fmt::join(lines, "; ")));
}

void RestoredCheckpoint::fill(const protocol::VariableDescriptor& variable) {
  const std::string& there = name_there(names_, variable.name);
  std::error_code error;
  if (!std::filesystem::exists(reader_.folder(), error)) {
    throw Error(
        Code::not_found,
        fmt::format("variable \"{}\" is to come from {}, which was deleted after it had been restored: make "
                    "variables before others are saved, or keep more of them",
                    variable.name, reader_.folder().string()));
  }
  protocol::RestorePlan plan(reader_, strategy_.runtime()->count(Role::ps));
  add_to_plan(plan, variable, there);
  check_on_ps(strategy_, plan);
  (void)read_on_ps(strategy_, plan);
  log_other_optimizer(*find_variable(reader_, there), variable);
  took_variable(variable.name);
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
  for (const std::string& name : left_) names.push_back(fmt::format("variable \"{}\"", name));
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
