// checkpoint_manager.cpp -- every ps writes or reads its part; the coordinator checks, publishes, and
// compares.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/log.hpp"
#include "capstan/checkpoint.hpp"
#include "io/hdf5/checkpoint_directory.hpp"
#include "io/hdf5/checkpoint_reader.hpp"
#include "shard/protocol.hpp"
#include "strategy/strategy.hpp"

namespace capstan {
namespace {

/// Writing or reading waits for disks, which have their own pace: ten times the usual patience, and more for
/// much data.
std::chrono::milliseconds disk_patience(const strategy::Strategy& strategy) {
  std::uint64_t bytes = 0;
  for (const auto& variable : strategy.variables()) {
    const auto& d = variable->descriptor;
    bytes +=
        d.rows() * d.width() *
        (size_of(d.dtype) + shard::slots_of(d.optimizer.kind).size() * size_of(shard::slot_dtype(d.dtype)));
  }
  return 10 * strategy.runtime()->patience() + std::chrono::milliseconds(bytes / 10'000);
}

/// The most shards of one variable that lie on one ps.
int most_shards_of_one(const strategy::Strategy& strategy) {
  int most = 1;
  for (const auto& variable : strategy.variables()) {
    std::map<std::int32_t, int> on;
    for (const auto& place : variable->descriptor.shards) most = std::max(most, ++on[place.ps]);
  }
  return most;
}

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

/// What is under way of the states ends, and nothing of them begins while it lives.
class Hold {
 public:
  using States = std::map<std::string, std::shared_ptr<strategy::SavedState>>;
  explicit Hold(const States& states) {
    for (const auto& [name, state] : states) {
      try {
        state->hold();
      } catch (...) {
        release();
        throw;
      }
      held_.push_back(state);
    }
  }
  ~Hold() { release(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  void release() noexcept {
    for (const auto& state : held_) state->release();
    held_.clear();
  }
  std::vector<std::shared_ptr<strategy::SavedState>> held_;
};

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

CheckpointManager::CheckpointManager(ParameterServerStrategy& strategy, CheckpointOptions options)
    : strategy_(strategy), options_(std::move(options)) {
  io::CheckpointDirectory(options_.directory, options_.max_to_keep).check_writable();
}

std::filesystem::path CheckpointManager::save(std::int64_t step, const std::string& user_state) {
  strategy::Strategy& strategy = strategy_.implementation();
  const auto states = strategy.states();
  const Hold hold(states);
  std::map<std::string, std::string> positions;
  for (const auto& [name, state] : states) positions.emplace(name, state->position());
  strategy.context().client().flush();
  io::CheckpointDirectory directory(options_.directory, options_.max_to_keep);
  std::vector<std::vector<std::byte>> answers;
  // All parts anew where a ps died and is back.
  strategy.context().client().retry([&] {
    const std::filesystem::path folder = directory.begin(step);
    answers = strategy.ask_every_ps(
        cluster::kSavePart,
        to_bytes(shard::SavePart{std::filesystem::absolute(folder).string(), most_shards_of_one(strategy)}),
        disk_patience(strategy), "write its part of a checkpoint");
  });
  std::vector<io::PartReport> parts;
  for (const auto& answer : answers) {
    for (auto& report : from_bytes<std::vector<io::PartReport>>(answer)) parts.push_back(std::move(report));
  }
  auto saved = directory.publish(step, parts, {user_state, options_.settings, std::move(positions)});
  strategy.note_checkpoint(std::filesystem::absolute(saved).string(), step);
  return saved;
}

std::optional<std::int64_t> CheckpointManager::latest() const {
  const auto newest = io::CheckpointDirectory(options_.directory).latest();
  return newest ? std::optional(newest->step) : std::nullopt;
}

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
        disk_patience(strategy), "read its part of a checkpoint");
  });
  with_positions(strategy, found.reader, false,
                 [](strategy::SavedState& state, const std::string& position) { state.restore(position); });
  user_state_ = found.reader.user_state();
  restored_from_ = found.reader.folder();
  strategy.note_checkpoint(std::filesystem::absolute(restored_from_).string(), found.reader.step());
  return found.reader.step();
}

}  // namespace capstan
