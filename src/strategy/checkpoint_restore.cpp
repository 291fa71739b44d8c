// checkpoint_restore.cpp -- finding a checkpoint that is whole and fits; every ps reads its rows of it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <set>

#include "base/log.hpp"
#include "capstan/checkpoint.hpp"
#include "io/hdf5/checkpoint_directory.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/fast_level.hpp"
#include "io/hdf5/layout.hpp"
#include "protocol/restore_plan.hpp"
#include "strategy/restoring.hpp"
#include "strategy/strategy.hpp"

namespace capstan {
namespace {

/// What does not fit, one line each.
std::vector<std::string> differences(const strategy::Strategy& strategy, const io::CheckpointReader& reader,
                                     const RestoreOptions& options) {
  std::vector<std::string> lines;
  std::set<std::string> left;
  for (const io::VariableInfo& variable : reader.variables()) left.insert(variable.name);
  for (const auto& variable : strategy.variables()) {
    const protocol::VariableDescriptor& d = variable->descriptor;
    const std::string& there = strategy::name_there(options.names, d.name);
    left.erase(there);
    if (const io::VariableInfo* found = strategy::find_variable(reader, there)) {
      strategy::list_differences(*found, d, lines);
    } else if (!options.allow_missing) {
      lines.push_back(fmt::format("variable \"{}\" is not in it", there));
    }
  }
  for (const auto& [here, there] : options.names) {
    if (strategy::find_variable(reader, there) != nullptr) continue;
    const auto line = fmt::format("variable \"{}\" is not in it", there);
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  }
  for (const std::string& name : left) {
    if (!options.allow_extra) lines.push_back(fmt::format("variable \"{}\" is not in this program", name));
  }
  return lines;
}

/// What `apply` does with each position and the state of its name.
void with_positions(const strategy::Strategy& strategy, const io::CheckpointReader& reader, bool log_rest,
                    const std::function<void(checkpoint::SavedState&, const std::string&)>& apply) {
  const auto states = strategy.states();
  for (const auto& [name, position] : reader.positions()) {
    if (const auto found = states.find(name); found != states.end()) apply(*found->second, position);
  }
  if (!log_rest) return;
  for (const auto& [name, state] : states) {
    if (reader.positions().contains(name)) continue;
    log::warn("{} has no position of \"{}\", which begins at its beginning", reader.folder().string(), name);
  }
}

/// What the program's own check threw, on its way past those who look for damaged checkpoints.
struct Refused {
  std::exception_ptr why;
};

/// Everything that can be said before anything is changed. Throws Error(data_loss) when it is damaged.
protocol::RestorePlan planned(strategy::Strategy& strategy, const io::CheckpointReader& reader,
                              const RestoreOptions& options) {
  if (options.check) {
    try {
      options.check(reader.user_state(), reader.folder().string());
    } catch (...) {
      throw Refused{std::current_exception()};
    }
  }
  if (const auto lines = differences(strategy, reader, options); !lines.empty()) {
    throw Error(Code::failed_precondition, fmt::format("checkpoint {} does not fit this program: {}",
                                                       reader.folder().string(), fmt::join(lines, "; ")));
  }
  protocol::RestorePlan plan(reader, strategy.runtime()->count(Role::ps));
  for (const auto& variable : strategy.variables()) {
    const std::string& there = strategy::name_there(options.names, variable->descriptor.name);
    if (strategy::find_variable(reader, there) != nullptr)
      strategy::add_to_plan(plan, variable->descriptor, there);
  }
  // Those of variables that are yet to be made as well: then it is too late to take the checkpoint before.
  for (const io::VariableInfo& variable : reader.variables()) plan.check_whole(variable.name);
  strategy::check_on_ps(strategy, plan);
  return plan;
}

/// Counters and rows. Returns the counters: a spare that takes a place meanwhile has those of an earlier
/// checkpoint.
strategy::PsContents::Counters read_all(strategy::Strategy& strategy, const io::CheckpointReader& reader,
                                        const protocol::RestorePlan& plan) {
  while (true) {
    const std::uint64_t moves = strategy.context().client().moves();
    for (const auto& [name, value] : reader.counters()) (void)strategy.set_counter(name, value);
    auto counters = strategy::read_on_ps(strategy, plan);
    if (strategy.context().client().moves() == moves) return counters;
  }
}

/// Fills what there is now. Returns the counters as they were when all ps had read.
strategy::PsContents::Counters restore(strategy::Strategy& strategy, const io::CheckpointReader& reader,
                                       const RestoreOptions& options) {
  const protocol::RestorePlan plan = planned(strategy, reader, options);
  with_positions(strategy, reader, true,
                 [](checkpoint::SavedState& state, const std::string& position) { state.check(position); });
  strategy.forget_recorded_step();
  strategy::PsContents::Counters counters;
  try {
    counters = read_all(strategy, reader, plan);
  } catch (const Error& error) {
    if (error.code() != Code::data_loss) throw;
    throw Error(error.code(),
                fmt::format("{} (after it had been found whole; variables have parts of it)", error.what()));
  }
  with_positions(strategy, reader, false,
                 [](checkpoint::SavedState& state, const std::string& position) { state.restore(position); });
  return counters;
}

/// What has been matched, and a word on the rest.
std::unique_ptr<strategy::Restored> matched(const strategy::Strategy& strategy, io::CheckpointReader reader,
                                            const RestoreOptions& options) {
  auto restored = std::make_unique<strategy::Restored>(std::move(reader), options.names);
  for (const auto& variable : strategy.variables()) {
    const protocol::VariableDescriptor& d = variable->descriptor;
    if (const auto* there =
            strategy::find_variable(restored->reader(), strategy::name_there(options.names, d.name))) {
      strategy::log_other_optimizer(*there, d);
      restored->took_variable(d.name);
    } else {
      restored->lacks(d.name);
    }
  }
  for (const auto& [name, state] : strategy.states()) restored->took_position(name);
  for (const std::string& name : strategy.created_counters()) {
    restored->took_counter(name);
    if (!restored->reader().counters().contains(name)) restored->lacks_counter(name);
  }
  const std::string folder = restored->reader().folder().string();
  if (const auto rest = restored->unmatched(); !rest.empty())
    log::info("not restored from {} until the program makes them: {}", folder, fmt::join(rest, ", "));
  if (const auto rest = restored->lacking(); !rest.empty())
    log::info("not in {}, and as they were: {}", folder, fmt::join(rest, ", "));
  return restored;
}

}  // namespace

std::optional<std::int64_t> CheckpointManager::restore_latest(const RestoreOptions& options) {
  try {
    wait();
  } catch (const Error& error) {
    log::error("a checkpoint was not saved: {}", error.what());
  }
  io::CheckpointDirectory directory(options_.directory, options_.max_to_keep, options_.keep_every_n_hours);
  (void)fast_->rescue(directory);
  if (!latest()) return std::nullopt;
  strategy::Strategy& strategy = strategy_.implementation();
  try {
    strategy::PsContents::Counters counters;
    auto found = io::open_latest(options_.directory, [&](const io::CheckpointReader& reader) {
      counters = restore(strategy, reader, options);
    });
    strategy.set_restored(matched(strategy, std::move(found.reader), options), std::move(counters));
  } catch (const Refused& refused) {
    std::rethrow_exception(refused.why);
  }
  whole_.reset();  // every row has been written to
  const std::int64_t step = note();
  schedule_ = SaveSchedule(options_.interval, step, SaveSchedule::Clock::now());
  return step;
}

std::int64_t Checkpoint::read(const std::filesystem::path& folder, const RestoreOptions& options) {
  auto replaced = folder;  // by one that a crash kept from its name
  replaced += io::kReplaced;
  std::error_code error;
  const bool is_replaced =
      !std::filesystem::exists(folder, error) && std::filesystem::exists(replaced, error);
  io::CheckpointReader reader(is_replaced ? replaced : folder);
  strategy::Strategy& strategy = strategy_.implementation();
  try {
    auto counters = restore(strategy, reader, options);
    strategy.set_restored(matched(strategy, std::move(reader), options), std::move(counters));
  } catch (const Refused& refused) {
    std::rethrow_exception(refused.why);
  }
  return note();
}

std::int64_t LastRestored::note() {
  const io::CheckpointReader& reader = strategy_.implementation().restored()->reader();
  user_state_ = reader.user_state();
  restored_from_ = reader.folder();
  return reader.step();
}

std::vector<std::string> LastRestored::unmatched() const {
  const strategy::Restored* restored = strategy_.implementation().restored();
  return restored == nullptr ? std::vector<std::string>{} : restored->unmatched();
}

void LastRestored::assert_consumed() const {
  const strategy::Restored* restored = strategy_.implementation().restored();
  if (restored == nullptr) return;
  std::string text;
  if (const auto rest = restored->unmatched(); !rest.empty())
    text += fmt::format("; in it and not in this program: {}", fmt::join(rest, ", "));
  if (const auto rest = restored->lacking(); !rest.empty())
    text += fmt::format("; in this program and not in it: {}", fmt::join(rest, ", "));
  if (text.empty()) return;
  throw Error(Code::failed_precondition, fmt::format("checkpoint {} is not this program's{}",
                                                     restored->reader().folder().string(), text));
}

}  // namespace capstan
