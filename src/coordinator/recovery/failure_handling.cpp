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
  members_changed_ = true;
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
      return failovers_.lose(peer.rank());
    case Role::ps:
      return lose_ps(peer, cause);
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
  returning_.forget(peer);
  auto told = tell_every_ps_of_death({peer.rank(), state == MemberState::fenced ? 1 : 0});
  if (before == MemberState::joining) return true;  // it has no closures yet
  const std::size_t closures =
      dispatcher_.take_from(peer, std::move(told), transport::deadline_in(runtime_.wait_timeout()));
  if (state == MemberState::left) return true;
  log::warn("{} is gone; its {} functions run elsewhere, {} workers are left", peer.name(), closures,
            workers());
  when_alone(peer);
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
void Coordinator::let_go(transport::Peer& peer) {
  const std::uint64_t ended = dispatcher_.ended(peer);
  (void)lose(peer, MemberState::left, "it asked to leave");
  peer.send(transport::kShutdown, {});
  log::info("{} has left after {} functions, {} workers are left", peer.name(), ended, workers());
  when_alone(peer);
}

void Coordinator::when_alone(const transport::Peer& last) {
  if (workers() > 0) return;
  last_lost_ = last.name();
  if (may_restart()) {
    alone_until_ = std::chrono::steady_clock::now() + runtime_.settings().duration("worker-wait");
  } else {
    queue_->break_down(Code::unavailable, last.name() + " is gone, and no worker is left");
  }
}

/// As far as their ranks tell: the last start of a worker may have failed before it came here.
bool Coordinator::may_restart() const {
  if (late_.may_come()) return true;
  const cluster::Table& table = runtime_.table();
  for (int index = 0; index < runtime_.count(Role::worker); ++index) {
    if (table.times_restarted(dispatcher_.worker(index)->rank()) < table.restarts) return true;
  }
  return false;
}

void Coordinator::give_up_waiting() {
  if (workers() > 0) {
    alone_until_.reset();
  } else if (std::chrono::steady_clock::now() >= *alone_until_) {
    alone_until_.reset();
    queue_->break_down(
        Code::unavailable,
        fmt::format("{} is gone, no worker is left, and none has come within {} ms (--worker-wait)",
                    last_lost_, runtime_.settings().duration("worker-wait").count()));
  }
}

/// Ranks whose pushes count no more.
std::vector<std::int32_t> Coordinator::lost_workers() const {
  std::vector<std::int32_t> lost;
  for (int rank = 0; rank < runtime_.table().capacity(); ++rank) {
    if (members_.is_lost(rank) && members_.member(rank).role == Role::worker) lost.push_back(rank);
  }
  return lost;
}

// Ps

void Coordinator::lose_ps(transport::Peer& peer, std::string cause) {
  // A process that was fenced has ended, which changes nothing.
  if (!members_.set(peer.rank(), MemberState::dead, std::move(cause))) return;
  failure_detector_.forget(peer.rank());
  strategy_.save_progress().lose(runtime_.member(peer.rank()).index, peer.name());
  failovers_.lose_ps(peer.rank());
  if (runtime_.ps_may_be_replaced()) {
    log::warn("{} is gone; all that need it wait until it is back", peer.name());
    return;
  }
  runtime_.give_up_ps();
  queue_->break_down(
      Code::unavailable,
      peer.name() +
          " is gone, and its shards with it; start again with --resume to go on from the last checkpoint");
}

bool Coordinator::greet_returned_ps() {
  const bool any = !returned_.empty();
  for (const auto& [member, incarnation] : std::exchange(returned_, {})) {
    if (!failovers_.admits(member, incarnation)) continue;
    transport::Peer& peer = runtime_.control_peer(member);
    lose_ps(peer, "its agent has restarted it");  // unless that is known
    runtime_.ps_returned_to_control(member);
    // Before a spare's record names it no more, and before the ps is greeted, which then relies on it.
    if (runtime_.coordinator_may_return()) note_members();
    failovers_.welcome(member.rank, incarnation);
    members_.set(member.rank, MemberState::alive);
    peer.send(transport::kHello, {});
    peer.send(transport::kHeartbeat, transport::as_bytes(protocol::PsHeartbeatHeader{}));
    for (const std::int32_t rank : dispatcher_.open_at(member.rank)) {
      peer.send(transport::kWorkerDead, transport::as_bytes(protocol::WorkerDead{rank, 0}));
    }
    returning_.tell_again(peer);
    log::info("{} is back", peer.name());
  }
  if (!members_.all_alive(Role::ps)) wait_for_ps();
  return any;
}

/// Its own host has --ps-wait; then it is a spare's turn.
cluster::Membership::Clock::time_point Coordinator::waits_until(const cluster::Membership::Status& ps) const {
  const auto wait = runtime_.settings().duration("ps-wait");
  const auto silent_for = runtime_.settings().duration("heartbeat-timeout");
  switch (ps.state) {
    case MemberState::suspected:
      return ps.since + std::max(wait - silent_for, {});  // both since its last sign of life
    case MemberState::dead:
      return ps.since + (runtime_.ps_may_return() ? wait : std::chrono::milliseconds(0));
    default:
      return ps.since;
  }
}

void Coordinator::wait_for_ps() {
  for (const auto& [rank, why] : std::exchange(not_taken_, {})) failovers_.fail(rank, why);
  if (runtime_.ps_given_up()) return;
  const auto now = std::chrono::steady_clock::now();
  for (int index = 0; index < runtime_.count(Role::ps); ++index) {
    const cluster::Member& ps = runtime_.member(Role::ps, index);
    if (members_.is_alive(ps.rank) || now < waits_until(members_.status(ps.rank))) continue;
    // Also of one that is only silent: a save does not wait for what its process may still write.
    if (!failovers_.is_being_replaced(ps.rank)) strategy_.save_progress().lose(index, ps.name());
    const bool spares = runtime_.count(Role::spare) > 0;
    if (spares && failovers_.advance(ps, lost_workers(), now)) continue;
    const std::string waited = runtime_.ps_may_return()
                                   ? fmt::format(", and it has not come back within {} ms (--ps-wait)",
                                                 runtime_.settings().duration("ps-wait").count())
                                   : "";
    const std::string no_spare =
        spares ? fmt::format("; no spare has taken its place: {}", failovers_.why(ps.rank)) : "";
    runtime_.give_up_ps();
    queue_->break_down(
        Code::unavailable,
        fmt::format(
            "{} is gone, its shards with it{}{}; start again with --resume to go on from the last checkpoint",
            ps.name(), waited, no_spare));
    return;
  }
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
    if (!beat || beat->incarnation != failovers_.incarnation_of(message.from)) return;
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
