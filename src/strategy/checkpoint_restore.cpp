// checkpoint_restore.cpp -- finding a checkpoint that is whole and fits; every ps reads its rows of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/log.hpp"
#include "capstan/checkpoint.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "shard/protocol.hpp"
#include "strategy/disk_patience.hpp"
#include "strategy/strategy.hpp"

namespace capstan {
namespace {

/// What does not fit, one line each.
std::vector<std::string> differences(const strategy::Strategy& strategy, const io::CheckpointReader& reader) {
  std::vector<std::string> lines;
  const auto& saved = reader.variables();
  const auto find = [&](const std::string& name) {
    return std::find_if(saved.begin(), saved.end(),
                        [&](const io::VariableInfo& v) { return v.name == name; });
  };
  for (const auto& variable : strategy.variables()) {
    const auto& d = variable->descriptor;
    const auto found = find(d.name);
    if (found == saved.end()) {
      lines.push_back(fmt::format("variable \"{}\" is not in it", d.name));
      continue;
    }
    if (found->dtype != d.dtype) {
      lines.push_back(fmt::format("variable \"{}\" is {} there, {} here", d.name, to_string(found->dtype),
                                  to_string(d.dtype)));
    }
    if (found->shape != shard::stored_shape(d.shape)) {
      lines.push_back(fmt::format("variable \"{}\" has shape ({}) there, ({}) here", d.name,
                                  fmt::join(found->shape, ", "), fmt::join(d.shape, ", ")));
    }
    std::vector<std::string> slots;
    for (const io::SlotInfo& slot : found->slots) slots.push_back(slot.name);
    if (slots != shard::slots_of(d.optimizer.kind)) {
      lines.push_back(fmt::format("variable \"{}\" was trained with {} there, {} here", d.name,
                                  found->optimizer, shard::describe(d.optimizer)));
    }
  }
  return lines;
}

/// What `apply` does with each position and the state of its name. The rest is said in the log.
void with_positions(const strategy::Strategy& strategy, const io::CheckpointReader& reader, bool log_rest,
                    const std::function<void(strategy::SavedState&, const std::string&)>& apply) {
  const auto states = strategy.states();
  for (const auto& [name, position] : reader.positions()) {
    if (const auto found = states.find(name); found != states.end()) {
      apply(*found->second, position);
    } else if (log_rest) {
      log::warn(
          "{} has a position of \"{}\", which this program has not: create its dataset before restoring",
          reader.folder().string(), name);
    }
  }
  if (!log_rest) return;
  for (const auto& [name, state] : states) {
    if (reader.positions().contains(name)) continue;
    log::warn("{} has no position of \"{}\", which begins at its beginning", reader.folder().string(), name);
  }
}

}  // namespace

std::optional<std::int64_t> CheckpointManager::restore_latest(const Check& check) {
  if (!latest()) return std::nullopt;
  const io::FoundCheckpoint found = io::open_to_resume(options_.directory);
  for (const std::string& damaged : found.damaged) log::warn("damaged checkpoint passed over: {}", damaged);

  if (check) check(found.reader.user_state(), found.reader.folder().string());
  strategy::Strategy& strategy = strategy_.implementation();
  if (const auto lines = differences(strategy, found.reader); !lines.empty()) {
    throw Error(Code::failed_precondition,
                fmt::format("checkpoint {} does not fit this program: {}", found.reader.folder().string(),
                            fmt::join(lines, "; ")));
  }
  with_positions(strategy, found.reader, true,
                 [](strategy::SavedState& state, const std::string& position) { state.check(position); });
  strategy.forget_recorded_step();
  strategy.context().client().retry([&] {
    strategy.ask_every_ps(
        cluster::kRestorePart,
        to_bytes(shard::RestorePart{std::filesystem::absolute(found.reader.folder()).string()}),
        strategy::disk_patience(strategy), "read its part of a checkpoint");
  });
  with_positions(strategy, found.reader, false,
                 [](strategy::SavedState& state, const std::string& position) { state.restore(position); });
  user_state_ = found.reader.user_state();
  restored_from_ = found.reader.folder();
  strategy.note_checkpoint(
      strategy.checkpoint_now(std::filesystem::absolute(restored_from_).string(), found.reader.step()));
  return found.reader.step();
}

}  // namespace capstan
