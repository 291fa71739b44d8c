// interim_control.cpp -- marks replicas as dead in the record with which a ClusterCoordinator starts.
#include "strategy/interim_control.hpp"

#include "base/log.hpp"
#include "transport/message_types.hpp"

namespace capstan::strategy {
namespace {

/// Time between two polls of the fabric. A ps repeats its message every 200 ms.
constexpr std::chrono::milliseconds kPeriod{50};

}  // namespace

InterimControl::InterimControl(cluster::Runtime& runtime) : runtime_(runtime) {
  runtime_.control().on_message(transport::kReplicaLost,
                                [this](const transport::Message& message) { drop_replica_of(message.from); });
}

InterimControl::~InterimControl() {
  stop();
  runtime_.control().on_message(transport::kReplicaLost, [](const transport::Message&) {});
}

void InterimControl::start() {
  if (!runtime_.ps_have_replicas()) return;
  thread_ = std::jthread([this, tag = runtime_.log_tag()](const std::stop_token& stop) {
    log::set_rank_tag(tag);
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      while (!stop.stop_requested() && runtime_.control().progress() != 0) {
      }
      stopped_.wait_for(lock, stop, kPeriod, [] { return false; });
    }
  });
}

void InterimControl::stop() { thread_ = {}; }

bool InterimControl::wait(const std::function<bool()>& done, transport::Deadline deadline) {
  const std::lock_guard lock(mutex_);
  return transport::progress_until(runtime_.control(), deadline, done);
}

void InterimControl::drop_replica_of(int rank) {
  using State = cluster::SpareRecord::State;
  const cluster::Member& ps = runtime_.member(rank);
  if (ps.role != Role::ps || !runtime_.ps_have_replicas()) return;
  const cluster::Member& replica = runtime_.member(Role::spare, ps.index);
  bool dropped = false;
  bool changed = false;
  runtime_.coordinator_memory().change([&](cluster::CoordinatorRecord& record) {
    if (record.spares.empty()) {
      for (const cluster::Member& member : runtime_.members()) {
        if (member.role == Role::spare) record.spares.push_back({.rank = member.rank});
      }
    }
    for (cluster::SpareRecord& spare : record.spares) {
      if (spare.rank != replica.rank) continue;
      changed = spare.state == State::standby;
      dropped = changed || (spare.state == State::dead && spare.incarnation == 0);
      if (changed) spare.state = State::dead;
    }
  });
  if (!dropped) return;  // the replica replaces the ps
  if (changed) log::warn("{} goes on without {}", ps.name(), replica.name());
  runtime_.control_peer(ps).send(transport::kReplicaDropped, {});
}

}  // namespace capstan::strategy
