// restore.cpp -- finds a checkpoint that is complete and compatible, and has every ps read its rows.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <set>

#include "base/log.hpp"
#include "capstan/checkpoint.hpp"
#include "checkpoint/checkpoint_writer.hpp"
#include "checkpoint/restored_checkpoint.hpp"
#include "io/hdf5/checkpoint_directory.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "io/hdf5/fast_level.hpp"
#include "io/hdf5/layout.hpp"
#include "protocol/restore_plan.hpp"
#include "strategy/strategy.hpp"

namespace capstan {
namespace {

/// Differences between the program and the checkpoint, one line each.
std::vector<std::string> differences(const strategy::Strategy& strategy, const io::CheckpointReader& reader,
                                     const RestoreOptions& options) {
  std::vector<std::string> lines;
  std::set<std::string> unmatched;
  for (const io::VariableInfo& variable : reader.variables()) unmatched.insert(variable.name);
  for (const auto& variable : strategy.variables().all()) {
    const protocol::VariableDescriptor& d = variable->descriptor;
    const std::string& saved_name = checkpoint::saved_name(options.names, d.name);
    const auto found = checkpoint::find_saved(reader, saved_name);
    for (const io::VariableInfo* saved : found) unmatched.erase(saved->name);
    if (!found.empty()) {
      checkpoint::list_differences(found, d, lines);
    } else if (!options.allow_missing) {
      lines.push_back(fmt::format("variable \"{}\" is not in the checkpoint", saved_name));
    }
  }
  for (const auto& [name, saved_name] : options.names) {
    if (!checkpoint::find_saved(reader, saved_name).empty()) continue;
    const auto line = fmt::format("variable \"{}\" is not in the checkpoint", saved_name);
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  }
  for (const std::string& name : unmatched) {
    if (!options.allow_extra) lines.push_back(fmt::format("variable \"{}\" is not in the program", name));
  }
  return lines;
}

/// Calls `apply` with each position of the checkpoint and the state of the same name. With `log_missing`,
/// warns about states without a position.
void with_positions(const strategy::Strategy& strategy, const io::CheckpointReader& reader, bool log_missing,
                    const std::function<void(strategy::CheckpointedState&, const std::string&)>& apply) {
  const auto states = strategy.states().all();
  for (const auto& [name, position] : reader.positions()) {
    if (const auto found = states.find(name); found != states.end()) apply(*found->second, position);
  }
  if (!log_missing) return;
  for (const auto& [name, state] : states) {
    if (reader.positions().contains(name)) continue;
    log::warn("checkpoint {} has no position of \"{}\", which starts from the beginning",
              reader.directory().string(), name);
  }
}

/// Wraps an exception of the program's own check, so that it is not taken for that of a damaged checkpoint.
struct Rejected {
  std::exception_ptr reason;
};

/// Performs all checks before anything is changed. Throws Error(data_loss) if the checkpoint is damaged.
protocol::RestorePlan planned(strategy::Strategy& strategy, const io::CheckpointReader& reader,
                              const RestoreOptions& options) {
  if (options.check) {
    try {
      options.check(reader.user_state(), reader.directory().string());
    } catch (...) {
      throw Rejected{std::current_exception()};
    }
  }
  if (const auto lines = differences(strategy, reader, options); !lines.empty()) {
    throw Error(Code::failed_precondition, fmt::format("checkpoint {} does not match the program: {}",
                                                       reader.directory().string(), fmt::join(lines, "; ")));
  }
  protocol::RestorePlan plan(reader, strategy.runtime()->count(Role::ps));
  for (const auto& variable : strategy.variables().all()) {
    const std::string& saved_name = checkpoint::saved_name(options.names, variable->descriptor.name);
    if (!checkpoint::find_saved(reader, saved_name).empty())
      checkpoint::add_to_plan(plan, variable->descriptor, saved_name);
  }
  // Includes variables that the program has yet to create: when it creates them, it is too late to fall back
  // to an earlier checkpoint.
  for (const io::VariableInfo& variable : reader.variables()) plan.check_complete(variable.name);
  checkpoint::check_on_ps(strategy, plan);
  return plan;
}

/// Restores counters and rows. Returns the counters. Repeats if a spare replaces a ps meanwhile, because
/// the spare has the counters of an earlier checkpoint.
strategy::PsContents::Counters read_all(strategy::Strategy& strategy, const io::CheckpointReader& reader,
                                        const protocol::RestorePlan& plan) {
  while (true) {
    const std::uint64_t moves = strategy.context().use_client()->connections().relocations();
    for (const auto& [name, value] : reader.counters()) (void)strategy.counters().set(name, value);
    auto counters = checkpoint::read_on_ps(strategy, plan);
    if (strategy.context().use_client()->connections().relocations() == moves) return counters;
  }
}

/// Discards the recorded step, and gives later closures numbers that no ps has seen.
void forget_recorded_step(strategy::Strategy& strategy) {
  cluster::Runtime& runtime = *strategy.runtime();
  if (!runtime.coordinator_may_return()) return;
  std::uint64_t next = 0;
  runtime.coordinator_memory().change([&](cluster::CoordinatorRecord& record) {
    record.step.reset();
    record.too_many_unrecorded = false;
    next = record.next_closure = (std::uint64_t{++record.restores} << 40) + 1;
  });
  if (const auto scheduler = strategy.control().scheduler()) scheduler->number_from(next);
}

/// Restores all current variables. Returns the counters once all ps have read.
strategy::PsContents::Counters restore(strategy::Strategy& strategy, const io::CheckpointReader& reader,
                                       const RestoreOptions& options) {
  const protocol::RestorePlan plan = planned(strategy, reader, options);
  with_positions(strategy, reader, true, [](strategy::CheckpointedState& state, const std::string& position) {
    state.check(position);
  });
  forget_recorded_step(strategy);
  strategy::PsContents::Counters counters;
  try {
    counters = read_all(strategy, reader, plan);
  } catch (const Error& error) {
    if (error.code() != Code::data_loss) throw;
    throw Error(error.code(),
                fmt::format("{} (after its checksums had been verified; some variables have been restored)",
                            error.what()));
  }
  with_positions(
      strategy, reader, false,
      [](strategy::CheckpointedState& state, const std::string& position) { state.restore(position); });
  return counters;
}

/// Matches the checkpoint with the program, and logs the parts that only one of them has.
std::unique_ptr<checkpoint::RestoredCheckpoint> matched(strategy::Strategy& strategy,
                                                        io::CheckpointReader reader,
                                                        const RestoreOptions& options) {
  auto restored =
      std::make_unique<checkpoint::RestoredCheckpoint>(strategy, std::move(reader), options.names);
  for (const auto& variable : strategy.variables().all()) {
    const protocol::VariableDescriptor& d = variable->descriptor;
    const auto saved =
        checkpoint::find_saved(restored->reader(), checkpoint::saved_name(options.names, d.name));
    if (!saved.empty()) {
      checkpoint::log_optimizer_differences(saved, d);
      restored->note_variable_restored(d.name);
    } else {
      restored->lacks_variable(d.name);
    }
  }
  for (const auto& [name, state] : strategy.states().all()) restored->note_position_restored(name);
  for (const std::string& name : strategy.counters().names()) {
    if (restored->counter(name)) restored->note_counter_restored(name);
  }
  if (const auto rest = restored->unmatched(); !rest.empty())
    log::info("will be restored from {} when the program creates them: {}", restored->path(),
              fmt::join(rest, ", "));
  if (const auto rest = restored->lacking(); !rest.empty())
    log::info("not in checkpoint {}, so unchanged: {}", restored->path(), fmt::join(rest, ", "));
  return restored;
}

/// Sets the checkpoint from which later variables and spares are restored.
void set_restore_point(strategy::Strategy& strategy, io::CheckpointReader reader,
                       const RestoreOptions& options, strategy::PsContents::Counters counters) {
  const std::int64_t step = reader.step();
  auto restored = matched(strategy, std::move(reader), options);
  std::vector<std::uint32_t> variables = strategy.variables().ids();
  // Variables that a previous process of this coordinator created and this program has yet to create.
  for (const protocol::ListedShard& shard : strategy.recovery().shards()) {
    if (restored->has_variable(shard.description.name)) variables.push_back(shard.description.variable);
  }
  auto directory = std::filesystem::absolute(restored->path()).string();
  strategy.restore_point().set(std::move(restored),
                               {std::move(directory), step, std::move(variables), std::move(counters)});
}

}  // namespace

std::optional<std::int64_t> CheckpointManager::restore_latest(const RestoreOptions& options) {
  try {
    wait();
  } catch (const Error& error) {
    log::error("cannot save a checkpoint: {}", error.what());
  }
  io::CheckpointDirectory directory = writer_->directory();
  (void)writer_->fast_level().recover(directory);
  if (!latest()) return std::nullopt;
  strategy::Strategy& strategy = strategy_.implementation();
  std::int64_t step = 0;
  try {
    strategy::PsContents::Counters counters;
    auto found = io::open_latest(directory.path(), [&](const io::CheckpointReader& reader) {
      counters = restore(strategy, reader, options);
    });
    step = found.reader.step();
    note(found.reader.user_state(), found.reader.directory());
    set_restore_point(strategy, std::move(found.reader), options, std::move(counters));
  } catch (const Rejected& rejected) {
    std::rethrow_exception(rejected.reason);
  }
  writer_->drop_base();
  schedule_ = SaveSchedule(writer_->options().interval, step, SaveSchedule::Clock::now());
  return step;
}

std::int64_t Checkpoint::read(const std::filesystem::path& directory, const RestoreOptions& options) {
  auto replaced = directory;  // the previous checkpoint, if a crash prevented the rename
  replaced += io::kReplaced;
  std::error_code error;
  const bool is_replaced =
      !std::filesystem::exists(directory, error) && std::filesystem::exists(replaced, error);
  io::CheckpointReader reader(is_replaced ? replaced : directory);
  strategy::Strategy& strategy = strategy_.implementation();
  const std::int64_t step = reader.step();
  try {
    auto counters = restore(strategy, reader, options);
    note(reader.user_state(), reader.directory());
    set_restore_point(strategy, std::move(reader), options, std::move(counters));
  } catch (const Rejected& rejected) {
    std::rethrow_exception(rejected.reason);
  }
  return step;
}

void LastRestored::note(std::string user_state, std::filesystem::path path) {
  user_state_ = std::move(user_state);
  restored_from_ = std::move(path);
}

std::vector<std::string> LastRestored::unmatched() const {
  const strategy::RestorePoint* restored = strategy_.implementation().restore_point().get();
  return restored == nullptr ? std::vector<std::string>{} : restored->unmatched();
}

void LastRestored::assert_consumed() const {
  const strategy::RestorePoint* restored = strategy_.implementation().restore_point().get();
  if (restored == nullptr) return;
  std::string text;
  if (const auto rest = restored->unmatched(); !rest.empty())
    text += fmt::format("; only in the checkpoint: {}", fmt::join(rest, ", "));
  if (const auto rest = restored->lacking(); !rest.empty())
    text += fmt::format("; only in the program: {}", fmt::join(rest, ", "));
  if (text.empty()) return;
  throw Error(Code::failed_precondition,
              fmt::format("checkpoint {} does not match the program{}", restored->path(), text));
}

}  // namespace capstan
