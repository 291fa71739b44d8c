// strategy_saves.cpp -- what saves and restores need of a strategy.
#include <utility>

#include "base/name.hpp"
#include "strategy/disk_timeout.hpp"
#include "strategy/strategy.hpp"

namespace capstan::strategy {

void Strategy::add_state(const std::string& name, const std::shared_ptr<CheckpointedState>& state) {
  check_name("dataset of splits", name);
  std::weak_ptr<CheckpointedState>& location = states_[name];
  if (!location.expired()) {
    throw Error(Code::already_exists, "there is a dataset of splits \"" + name + "\" already");
  }
  if (const auto position = restore_point_ ? restore_point_->position(name) : std::nullopt) {
    state->check(*position);
    state->restore(*position);
    restore_point_->took_position(name);
  }
  location = state;
}

std::map<std::string, std::shared_ptr<CheckpointedState>> Strategy::states() const {
  std::map<std::string, std::shared_ptr<CheckpointedState>> alive;
  for (const auto& [name, state] : states_) {
    if (auto there = state.lock()) alive.emplace(name, std::move(there));
  }
  return alive;
}

void Strategy::set_restore_point(std::unique_ptr<RestorePoint> point,
                                 std::optional<PsContents::Checkpoint> checkpoint) {
  restore_point_ = std::move(point);
  if (!restore_point_->complete()) return contents_.forget_checkpoint();
  if (checkpoint) checkpoint->restored = true;
  note_checkpoint(std::move(checkpoint));
}

PsContents::Counters Strategy::at_rest(const std::function<void()>& move_all) {
  client::Client& client = context_.client();
  while (true) {
    const std::uint64_t moves = client.connections().relocations();
    auto counters = read_counters();
    client.connections().retry(move_all);
    if (client.connections().relocations() == moves) return counters;
  }
}

std::optional<PsContents::Checkpoint> Strategy::checkpoint_of(const std::string& directory, std::int64_t step,
                                                              PsContents::Counters counters) const {
  if (runtime_->count(Role::spare) == 0) return std::nullopt;
  return PsContents::Checkpoint{directory, step, next_variable_ - 1, std::move(counters)};
}

void Strategy::note_checkpoint(std::optional<PsContents::Checkpoint> checkpoint) {
  if (checkpoint) contents_.set_checkpoint(std::move(*checkpoint));
}

void Strategy::begin_scheduler(std::shared_ptr<ClosureScheduler> scheduler) {
  const std::lock_guard lock(scheduler_mutex_);
  scheduler_ = std::move(scheduler);
}

void Strategy::end_scheduler() {
  (void)wait_for_control([this] { return save_.settled(); }, transport::deadline_in(disk_timeout(*this)));
  const std::lock_guard lock(scheduler_mutex_);
  scheduler_.reset();
  scheduler_ended_ = true;
}

std::shared_ptr<ClosureScheduler> Strategy::scheduler() const {
  const std::lock_guard lock(scheduler_mutex_);
  return scheduler_;
}

bool Strategy::wait_for_control(const std::function<bool()>& done, transport::Deadline deadline) {
  if (const auto scheduler = this->scheduler()) return scheduler->wait_until(done, deadline);
  // Without a scheduler this thread looks for failures itself.
  const auto done_or_lost = [&] {
    for (int ps = 0; ps < runtime_->count(Role::ps); ++ps) {
      const transport::Peer& peer = runtime_->control_peer(runtime_->member(Role::ps, ps));
      if (peer.failed()) save_.lose(ps, peer.name());
    }
    return done();
  };
  return interim_control_.wait(done_or_lost, deadline);
}

void Strategy::forget_recorded_step() {
  if (!runtime_->coordinator_may_return()) return;
  std::uint64_t next = 0;
  runtime_->coordinator_memory().change([&](cluster::CoordinatorRecord& record) {
    record.step.reset();
    record.too_much_open = false;
    next = record.next_closure = (std::uint64_t{++record.restores} << 40) + 1;
  });
  if (const auto scheduler = this->scheduler()) scheduler->number_from(next);
}

}  // namespace capstan::strategy
