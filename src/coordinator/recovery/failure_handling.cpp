// failure_handling.cpp -- ranks that die, fall silent or leave.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.hpp"
#include "coordinator/coordinator.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::coordinator {

using cluster::MemberState;

/// Called for every change of a member's state.
void Coordinator::on_member_change(const cluster::Membership::Change& change) {
  record_.note_change();
  metrics_.note(change);
}

void Coordinator::on_failure(transport::Peer& peer) {
  const cluster::Member& member = members_.member(peer.rank());
  // The peer is a previous process of this rank, which was told to end.
  if (&peer != &runtime_.control_peer(member)) return;
  const std::string cause = "its process has ended";
  switch (member.role) {
    case Role::evaluator:
      members_.set(peer.rank(), MemberState::dead, cause);
      log::warn("{} is dead; checkpoints are no longer evaluated", peer.name());
      return;
    case Role::spare:
      // If the spare has replaced a ps, the peer of that ps reports the death. This one fails late or never.
      if (!ps_recovery_.failovers().role_of(peer.rank()).empty()) return;
      members_.set(peer.rank(), MemberState::dead, cause);
      return ps_recovery_.failovers().on_spare_dead(peer.rank());
    case Role::ps:
      return ps_recovery_.lose(peer, cause);
    default:
      (void)lose(peer, MemberState::dead, cause);
  }
}

// Workers

/// Handles the loss of a worker. Returns false if the worker was lost already.
bool Coordinator::lose(transport::Peer& peer, MemberState state, std::string cause) {
  const MemberState before = members_.state(peer.rank());
  if (!members_.set(peer.rank(), state, std::move(cause))) return false;
  failure_detector_.forget(peer.rank());
  restarted_workers_.forget(peer);
  auto told = tell_every_ps_of_death({peer.rank(), state == MemberState::fenced ? 1 : 0});
  if (before == MemberState::joining) return true;  // it has no closures yet
  const std::size_t closures =
      dispatcher_.take_from(peer, std::move(told), transport::deadline_in(runtime_.wait_timeout()));
  if (state == MemberState::left) return true;
  log::warn("{} is dead; rescheduled functions: {}, live workers: {}", peer.name(), closures, workers());
  last_worker_.note_loss(peer.name());
  return true;
}

/// Notifies every ps and returns their ranks. A ps that the worker had not connected to must reject it later,
/// too. Each ps reports when it has applied the worker's pushes; a dead ps is notified when it returns.
std::set<int> Coordinator::tell_every_ps_of_death(const protocol::WorkerDead& worker) {
  std::set<int> told;
  for (int ps = 0; ps < runtime_.count(Role::ps); ++ps) {
    transport::Peer& peer = runtime_.control_peer(runtime_.member(Role::ps, ps));
    peer.send(transport::kWorkerDead, transport::as_bytes(worker));
    told.insert(peer.rank());
  }
  return told;
}

/// Releases a worker that asked to leave. REQUIRES: its closures have ended, and their pushes are applied.
void Coordinator::release(transport::Peer& peer) {
  const std::uint64_t ended = dispatcher_.ended(peer);
  (void)lose(peer, MemberState::left, "it asked to leave");
  peer.send(transport::kShutdown, {});
  log::info("{} has left; executed functions: {}, live workers: {}", peer.name(), ended, workers());
  last_worker_.note_loss(peer.name());
}

// Heartbeats

/// Answers each heartbeat, so that the sender knows that the coordinator is alive.
void Coordinator::take_heartbeat(const transport::Message& message) {
  const MemberState state = members_.state(message.from);
  if (state != MemberState::joining && state != MemberState::alive && state != MemberState::suspected) return;
  const cluster::Member& member = members_.member(message.from);
  bool busy = false;
  if (member.role == Role::ps) {
    const auto beat = transport::read_header<protocol::PsHeartbeatHeader>(message);
    if (!beat || beat->incarnation != ps_recovery_.failovers().incarnation_of(message.from)) return;
    busy = beat->busy != 0;
  } else if (member.role != Role::worker) {
    return;
  }
  (void)failure_detector_.heard(message.from, cluster::FailureDetector::Clock::now(), busy);
  if (state == MemberState::suspected) {
    members_.set(message.from, MemberState::alive);
    log::info("{} is reachable again", member.name());
  }
  transport::Peer& peer = runtime_.control_peer(member);
  if (!peer.failed()) peer.send(transport::kHeartbeat, transport::as_bytes(protocol::PsHeartbeatHeader{}));
}

/// Watches restarted workers, which may fall silent before their first heartbeat.
void Coordinator::watch_restarted_workers(cluster::FailureDetector::Clock::time_point now) {
  for (const int rank : members_.worker_ranks()) {
    if (members_.is_alive(rank) && runtime_.table().times_restarted(rank) > 0)
      failure_detector_.heard(rank, now);
  }
}

void Coordinator::check_silent_ranks(cluster::FailureDetector::Clock::time_point now) {
  for (const int rank : failure_detector_.check(now)) {
    const std::string cause = fmt::format("no sign of life within {} ms (--heartbeat-timeout)",
                                          runtime_.settings().duration("heartbeat-timeout").count());
    const std::string name = members_.name_of(rank);
    if (members_.member(rank).role == Role::ps) {
      // Its process may be alive: stopped, or behind a failed link.
      log::warn("{} is silent: {}; its dependents block until it is reachable again", name, cause);
      members_.set(rank, MemberState::suspected, cause);
    } else {
      log::warn("{} is silent and counts as dead: {}", name, cause);
      transport::Peer& peer = runtime_.control_peer(members_.member(rank));
      peer.send(transport::kFenced, {});  // received if the worker resumes
      (void)lose(peer, MemberState::fenced, cause);
    }
  }
}

/// Closures of a lost worker are queued again once every ps has applied the worker's pushes. Breaks the queue
/// down if a live ps does not do so in time.
void Coordinator::check_silent_ps() {
  const auto overdue = dispatcher_.overdue();
  // A dead ps has its own deadline: --ps-wait, and then that of the failover. A ps that has returned gets a
  // new timeout.
  if (!overdue || queue_->broken() || !members_.is_alive(overdue->ps)) return;
  const auto returned = members_.status(overdue->ps).since;
  if (cluster::Membership::Clock::now() < returned + runtime_.wait_timeout()) return;
  queue_->break_down(
      Code::unavailable,
      fmt::format("waited {} ms for {} to apply what {} had pushed before it was lost; restart the job with "
                  "--resume to continue from the last checkpoint",
                  runtime_.wait_timeout().count(), runtime_.name_of(overdue->ps),
                  runtime_.name_of(overdue->worker)));
}

}  // namespace capstan::coordinator
