// failure_handling.cpp -- ranks that die, fall silent, come back or leave, and what the coordinator does
// about it.
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

/// Of each change of a member, whoever has made it.
void Coordinator::note(const cluster::Membership::Change& change) {
  record_.note_change();
  metrics_.note(change);
}

void Coordinator::on_failure(transport::Peer& peer) {
  const cluster::Member& member = members_.member(peer.rank());
  // Of another process than the one that has the rank: it was told to end.
  if (&peer != &runtime_.control_peer(member)) return;
  const std::string cause = "its process has ended";
  switch (member.role) {
    case Role::evaluator:
      members_.set(peer.rank(), MemberState::dead, cause);
      log::warn("{} is gone; nobody evaluates checkpoints any more", peer.name());
      return;
    case Role::spare:
      members_.set(peer.rank(), MemberState::dead, cause);
      return ps_recovery_.failovers().lose(peer.rank());
    case Role::ps:
      return ps_recovery_.lose(peer, cause);
    default:
      (void)lose(peer, MemberState::dead, cause);
  }
}

// Workers

/// Returns false for one that is lost already.
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
  log::warn("{} is gone; its {} functions run elsewhere, {} workers are left", peer.name(), closures,
            workers());
  last_worker_.note_loss(peer.name());
  return true;
}

/// Returns the ranks of all ps. One that the worker had not reached yet would never notice; each says when it
/// has applied what the worker pushed, and one that is away hears of it again when it is back.
std::set<int> Coordinator::tell_every_ps_of_death(const protocol::WorkerDead& worker) {
  std::set<int> told;
  for (int ps = 0; ps < runtime_.count(Role::ps); ++ps) {
    transport::Peer& peer = runtime_.control_peer(runtime_.member(Role::ps, ps));
    peer.send(transport::kWorkerDead, transport::as_bytes(worker));
    told.insert(peer.rank());
  }
  return told;
}

/// All that it ran has ended, and has been applied; it has nothing to lose.
void Coordinator::release(transport::Peer& peer) {
  const std::uint64_t ended = dispatcher_.ended(peer);
  (void)lose(peer, MemberState::left, "it asked to leave");
  peer.send(transport::kShutdown, {});
  log::info("{} has left after {} functions, {} workers are left", peer.name(), ended, workers());
  last_worker_.note_loss(peer.name());
}

// Heartbeats

/// Each is answered, so that who beats knows that it is heard.
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
  if (failure_detector_.heard(message.from, cluster::FailureDetector::Clock::now(), busy)) {
    members_.set(message.from, MemberState::alive);
    log::info("{} is heard again", member.name());
  }
  transport::Peer& peer = runtime_.control_peer(member);
  if (!peer.failed()) peer.send(transport::kHeartbeat, transport::as_bytes(protocol::PsHeartbeatHeader{}));
}

/// Workers that have said that they are there may fall silent before their first heartbeat.
void Coordinator::watch_returned(cluster::FailureDetector::Clock::time_point now) {
  for (const int rank : members_.worker_ranks()) {
    if (members_.is_alive(rank) && runtime_.table().times_restarted(rank) > 0)
      failure_detector_.heard(rank, now);
  }
}

void Coordinator::look_for_silent_ranks(cluster::FailureDetector::Clock::time_point now) {
  for (const int rank : failure_detector_.look(now)) {
    const std::string cause = fmt::format("no sign of life within {} ms (--heartbeat-timeout)",
                                          runtime_.settings().duration("heartbeat-timeout").count());
    const std::string name = members_.name_of(rank);
    if (members_.member(rank).role == Role::ps) {
      // Its process may live: it may be stopped, or the connection to its host may be down.
      log::warn("{} is silent: {}; all wait until it is heard again", name, cause);
      members_.set(rank, MemberState::suspected, cause);
    } else {
      log::warn("{} is silent and counts as dead: {}", name, cause);
      transport::Peer& peer = runtime_.control_peer(members_.member(rank));
      peer.send(transport::kFenced, {});  // for when it resumes
      (void)lose(peer, MemberState::fenced, cause);
    }
  }
}

/// Closures of a lost worker wait for every ps.
void Coordinator::look_for_silent_ps() {
  const auto overdue = dispatcher_.overdue();
  // One that is away has --ps-wait, and then a spare has its time.
  if (!overdue || queue_->broken() || !members_.is_alive(overdue->ps)) return;
  queue_->break_down(
      Code::unavailable,
      fmt::format("waited {} ms for {} to apply what {} had pushed before it was lost; start again with "
                  "--resume to go on from the last checkpoint",
                  runtime_.wait_timeout().count(), runtime_.name_of(overdue->ps),
                  runtime_.name_of(overdue->worker)));
}

}  // namespace capstan::coordinator
