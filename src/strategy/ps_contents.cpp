// ps_contents.cpp -- a list, and what of it a checkpoint has.
#include "strategy/ps_contents.hpp"

#include <fmt/format.h>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"

namespace capstan::strategy {

PsContents::PsContents(cluster::CoordinatorMemory& memory) : memory_(memory) {
  const auto found = memory_.read().checkpoint;
  if (!found.empty()) checkpoint_ = from_bytes<Checkpoint>(found);
}

void PsContents::note() {
  memory_.change([this](cluster::CoordinatorRecord& record) {
    record.checkpoint = checkpoint_ ? to_bytes(*checkpoint_) : std::vector<std::byte>();
  });
}

void PsContents::add(int ps, protocol::CreateShard shard) {
  const std::lock_guard lock(mutex_);
  shards_.emplace_back(ps, std::move(shard));
}

void PsContents::add_group(const std::string& name) {
  const std::lock_guard lock(mutex_);
  group_ = name;
}

void PsContents::set_checkpoint(Checkpoint checkpoint) {
  const std::lock_guard lock(mutex_);
  checkpoint_ = std::move(checkpoint);
  note();
}

void PsContents::move_checkpoint(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  if (!checkpoint_ || checkpoint_->directory != from) return;
  checkpoint_->directory = to;
  note();
}

void PsContents::forget_checkpoint() {
  const std::lock_guard lock(mutex_);
  checkpoint_.reset();
  note();
}

void PsContents::extend_checkpoint(std::uint32_t variable) {
  const std::lock_guard lock(mutex_);
  if (!checkpoint_ || !checkpoint_->restored) return;
  checkpoint_->last_variable = variable;
  note();
}

void PsContents::extend_checkpoint(const Counter& counter) {
  const std::lock_guard lock(mutex_);
  if (!checkpoint_ || !checkpoint_->restored) return;
  checkpoint_->counters.push_back(counter);
  note();
}

std::optional<PsContents::Checkpoint> PsContents::checkpoint() const {
  const std::lock_guard lock(mutex_);
  return checkpoint_;
}

void PsContents::check_group() const {
  if (!group_.empty()) {
    throw Error(
        Code::unavailable,
        fmt::format("what the workers of update group \"{}\" had pushed in their last step is lost", group_));
  }
}

void PsContents::require_no_group() const {
  const std::lock_guard lock(mutex_);
  check_group();
}

protocol::FailoverRequest PsContents::takeover_of(int ps) const {
  const std::lock_guard lock(mutex_);
  check_group();
  if (!checkpoint_) {
    throw Error(
        Code::unavailable,
        "no checkpoint was saved or restored in this run (CheckpointManager) that its shards could be "
        "taken from");
  }
  protocol::FailoverRequest failover;
  failover.index = ps;
  failover.source = protocol::FailoverRequest::Source::checkpoint;
  failover.directory = checkpoint_->directory;
  for (const auto& [where, shard] : shards_) {
    if (where != ps) continue;
    if (shard.variable > checkpoint_->last_variable) {
      throw Error(Code::unavailable, fmt::format("variable \"{}\" was made after the last checkpoint, {}",
                                                 shard.name, checkpoint_->directory));
    }
    failover.shards.push_back(shard);
  }
  for (const auto& counter : checkpoint_->counters) {
    if (counter.ps == ps) failover.counters.emplace_back(counter.index, counter.value);
  }
  return failover;
}

}  // namespace capstan::strategy
