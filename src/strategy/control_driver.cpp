// control_driver.cpp -- hands the control fabric to the scheduler, and takes it back.
#include "strategy/control_driver.hpp"

#include <utility>

namespace capstan::strategy {

ControlDriver::ControlDriver(cluster::Runtime& runtime, SaveProgress& save)
    : runtime_(runtime), save_(save), interim_(runtime) {}

void ControlDriver::begin_scheduler(std::shared_ptr<ClosureScheduler> scheduler) {
  const std::lock_guard lock(mutex_);
  scheduler_ = std::move(scheduler);
}

void ControlDriver::end_scheduler(transport::Deadline deadline) {
  (void)wait_until([this] { return save_.settled(); }, deadline);
  const std::lock_guard lock(mutex_);
  scheduler_.reset();
  scheduler_ended_ = true;
}

std::shared_ptr<ClosureScheduler> ControlDriver::scheduler() const {
  const std::lock_guard lock(mutex_);
  return scheduler_;
}

bool ControlDriver::wait_until(const std::function<bool()>& done, transport::Deadline deadline) {
  if (const auto scheduler = this->scheduler()) return scheduler->wait_until(done, deadline);
  // Without a scheduler no other thread detects the death of a ps.
  const auto done_or_lost = [&] {
    for (int ps = 0; ps < runtime_.count(Role::ps); ++ps) {
      const transport::Peer& peer = runtime_.control_peer(runtime_.member(Role::ps, ps));
      if (peer.failed()) save_.note_death(ps, peer.name());
    }
    return done();
  };
  return interim_.wait(done_or_lost, deadline);
}

}  // namespace capstan::strategy
