// ps_contents.cpp -- a list of shards, and the variables that the last checkpoint has.
#include "strategy/ps_contents.hpp"

#include <fmt/format.h>

#include <set>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"

namespace capstan::strategy {

PsContents::PsContents(cluster::CoordinatorMemory& memory, bool has_spares)
    : memory_(memory), has_spares_(has_spares) {
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
  if (!has_spares_) return;
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
  checkpoint_->variables.push_back(variable);
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
  if (group_.empty()) return;
  throw Error(Code::unavailable,
              fmt::format("the pushes of the last step of update group \"{}\" are lost", group_));
}

void PsContents::require_no_group() const {
  const std::lock_guard lock(mutex_);
  check_group();
}

protocol::FailoverRequest PsContents::failover_of(int ps) const {
  const std::lock_guard lock(mutex_);
  check_group();
  if (!checkpoint_) {
    throw Error(Code::unavailable,
                "this run has no checkpoint to restore its shards from; save one with CheckpointManager");
  }
  protocol::FailoverRequest failover;
  failover.index = ps;
  failover.source = protocol::FailoverRequest::Source::checkpoint;
  failover.directory = checkpoint_->directory;
  const std::set<std::uint32_t> saved(checkpoint_->variables.begin(), checkpoint_->variables.end());
  for (const auto& [on, shard] : shards_) {
    if (on != ps) continue;
    if (!saved.contains(shard.variable)) {
      throw Error(Code::unavailable, fmt::format("variable \"{}\" is not in the last checkpoint, {}",
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
