// checkpoint_manager.cpp -- every ps writes its part; the coordinator checks and publishes.
#include <algorithm>
#include <map>

#include "capstan/checkpoint.hpp"
#include "io/hdf5/checkpoint_directory.hpp"
#include "shard/protocol.hpp"
#include "strategy/disk_patience.hpp"
#include "strategy/strategy.hpp"

namespace capstan {
namespace {

/// The most shards of one variable that lie on one ps.
int most_shards_of_one(const strategy::Strategy& strategy) {
  int most = 1;
  for (const auto& variable : strategy.variables()) {
    std::map<std::int32_t, int> on;
    for (const auto& place : variable->descriptor.shards) most = std::max(most, ++on[place.ps]);
  }
  return most;
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
        strategy::disk_patience(strategy), "write its part of a checkpoint");
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

}  // namespace capstan
