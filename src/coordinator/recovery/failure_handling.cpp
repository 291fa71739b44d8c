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

/// Who was told. A ps that the worker had not reached yet would never notice; the others say when they have
/// applied what it pushed.
std::set<int> Coordinator::tell_every_ps_of_death(const protocol::WorkerDead& worker) {
  std::set<int> told;
  for (int ps = 0; ps < runtime_.count(Role::ps); ++ps) {
    transport::Peer& peer = runtime_.control_peer(runtime_.member(Role::ps, ps));
    if (peer.failed() && !away_.contains(peer.rank())) continue;
    peer.send(transport::kWorkerDead,
              transport::as_bytes(worker));  // to one that is away, again when it is back
    told.insert(peer.rank());
  }
  return told;
}

void Coordinator::lose_ps(transport::Peer& peer) {
  if (failovers_.is_being_replaced(peer.rank())) return;  // the process that was fenced off has ended
  metrics_.count_lost(runtime_.member(peer.rank()));
  failure_detector_.forget(peer.rank());
  strategy_.save_progress().lose(runtime_.member(peer.rank()).index, peer.name());
  if (const int spare = failovers_.lose_ps(peer.rank()); spare >= 0) dead_ranks_.add(spare);
  if (runtime_.ps_may_be_replaced()) {
    const auto wait =
        runtime_.ps_may_return() ? runtime_.settings().duration("ps-wait") : std::chrono::milliseconds(0);
    away_[peer.rank()] = std::chrono::steady_clock::now() + wait;
    log::warn("{} is gone; all that need it wait until it is back", peer.name());
    return;
  }
  runtime_.give_up_ps();
  queue_->break_down(
      Code::unavailable,
      peer.name() +
          " is gone, and its shards with it; start again with --resume to go on from the last checkpoint");
}

void Coordinator::on_failure(transport::Peer& peer) {
  // Of another process than the one that has the rank: it was told to end.
  if (&peer != &runtime_.control_peer(runtime_.member(peer.rank()))) return;
  dead_ranks_.add(peer.rank());
  if (runtime_.member(peer.rank()).role == Role::evaluator) {
    log::warn("{} is gone; nobody evaluates checkpoints any more", peer.name());
    return;
  }
  if (runtime_.member(peer.rank()).role == Role::spare) return failovers_.lose(peer.rank());
  if (runtime_.member(peer.rank()).role == Role::ps) return lose_ps(peer);
  failure_detector_.mark_dead(peer.rank());
  returning_.forget(peer);
  lose_worker(peer);
}

bool Coordinator::greet_returned_ps() {
  const bool any = !returned_.empty();
  for (const auto& [member, incarnation] : std::exchange(returned_, {})) {
    if (!failovers_.admits(member, incarnation)) continue;
    runtime_.ps_returned_to_control(member);
    // Before a spare's record names it no more, and before the ps is greeted, which then relies on it.
    if (runtime_.coordinator_may_return()) note_members();
    failovers_.welcome(member.rank, incarnation);
    away_.erase(member.rank);
    failure_detector_.forget(member.rank);
    dead_ranks_.remove(member.rank);
    if (const int spare = failovers_.spare_of(member.rank); spare >= 0) dead_ranks_.remove(spare);
    transport::Peer& peer = runtime_.control_peer(member);
    peer.send(transport::kHello, {});
    peer.send(transport::kHeartbeat, transport::as_bytes(protocol::PsHeartbeatHeader{}));
    for (const std::int32_t rank : dispatcher_.open_at(member.rank)) {
      peer.send(transport::kWorkerDead, transport::as_bytes(protocol::WorkerDead{rank, 0}));
    }
    returning_.tell_again(peer);
    metrics_.count_back(member);
    log::info("{} is back", peer.name());
  }
  if (!away_.empty()) wait_for_ps();
  return any;
}

/// Its own host has --ps-wait; then it is a spare's turn.
void Coordinator::wait_for_ps() {
  for (const auto& [rank, why] : std::exchange(not_taken_, {})) failovers_.fail(rank, why);
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [rank, until] : away_) {
    if (now < until) continue;
    // Also of one that is only silent: a save does not wait for what its process may still write.
    if (!failovers_.is_being_replaced(rank))
      strategy_.save_progress().lose(runtime_.member(rank).index, runtime_.name_of(rank));
    const bool spares = runtime_.count(Role::spare) > 0;
    if (spares && failovers_.advance(runtime_.member(rank), dead_workers(), now)) continue;
    const std::string waited = runtime_.ps_may_return()
                                   ? fmt::format(", and it has not come back within {} ms (--ps-wait)",
                                                 runtime_.settings().duration("ps-wait").count())
                                   : "";
    const std::string no_spare =
        spares ? fmt::format("; no spare has taken its place: {}", failovers_.why(rank)) : "";
    runtime_.give_up_ps();
    queue_->break_down(
        Code::unavailable,
        fmt::format(
            "{} is gone, its shards with it{}{}; start again with --resume to go on from the last checkpoint",
            runtime_.name_of(rank), waited, no_spare));
    away_.clear();
    break;
  }
}

/// Ranks whose pushes count no more: earlier lives, and workers that are lost.
std::vector<std::int32_t> Coordinator::dead_workers() const {
  std::vector<std::int32_t> dead;
  for (int rank = 0; rank < runtime_.table().capacity(); ++rank) {
    if (!runtime_.knows(rank) || runtime_.member(rank).role != Role::worker) continue;
    const int index = runtime_.member(rank).index;
    const bool lives = index >= dispatcher_.workers() || returning_.contains(rank) ||
                       (dispatcher_.worker(index)->rank() == rank && !queue_->lost(index));
    if (!lives) dead.push_back(rank);
  }
  return dead;
}

bool Coordinator::is_worker(int rank) const {
  for (int index = 0; index < dispatcher_.workers(); ++index) {
    if (dispatcher_.worker(index)->rank() == rank) return true;
  }
  return returning_.contains(rank);
}

/// Each is answered, so that who beats knows that it is heard.
void Coordinator::take_heartbeat(const transport::Message& message) {
  const auto now = cluster::FailureDetector::Clock::now();
  const auto answer = [&] {
    transport::Peer& peer = runtime_.control_peer(runtime_.member(message.from));
    if (!peer.failed()) peer.send(transport::kHeartbeat, transport::as_bytes(protocol::PsHeartbeatHeader{}));
  };
  if (is_worker(message.from)) {
    failure_detector_.heard(message.from, now);
    answer();
  } else if (runtime_.knows(message.from) && runtime_.member(message.from).role == Role::ps) {
    const auto beat = transport::read_header<protocol::PsHeartbeatHeader>(message);
    if (!beat) return;
    if (beat->incarnation != failovers_.incarnation_of(message.from))
      return;  // of a process that was fenced off
    if (failure_detector_.heard(message.from, now, beat->busy != 0)) {
      away_.erase(message.from);
      dead_ranks_.remove(message.from);
      log::info("{} is heard again", runtime_.name_of(message.from));
    }
    answer();
  }
}

/// They have said that they are there, and may fall silent before their first heartbeat.
void Coordinator::watch_returned(cluster::FailureDetector::Clock::time_point now) {
  for (int index = 0; index < dispatcher_.workers(); ++index) {
    const int rank = dispatcher_.worker(index)->rank();
    if (runtime_.table().times_restarted(rank) > 0) failure_detector_.heard(rank, now);
  }
}

void Coordinator::look_for_silent_ranks(cluster::FailureDetector::Clock::time_point now) {
  for (const int rank : failure_detector_.look(now)) {
    if (runtime_.member(rank).role == Role::ps) {
      wait_for_silent_ps(rank, now);
    } else {
      lose_silent_worker(rank);
    }
  }
}

/// Its process may live: it may be stopped, or the connection to its host may be down.
void Coordinator::wait_for_silent_ps(int rank, cluster::FailureDetector::Clock::time_point now) {
  const auto silent_for = runtime_.settings().duration("heartbeat-timeout");
  const auto wait = runtime_.settings().duration("ps-wait");
  away_[rank] = now + std::max(wait - silent_for, {});  // both since its last sign of life
  dead_ranks_.add(rank);
  log::warn(
      "{} is silent: no sign of life within {} ms (--heartbeat-timeout); all wait until it is heard again",
      runtime_.name_of(rank), silent_for.count());
}

void Coordinator::lose_silent_worker(int rank) {
  transport::Peer& peer = runtime_.control_peer(runtime_.member(rank));
  log::warn("{} is silent and counts as dead: no sign of life within {} ms (--heartbeat-timeout)",
            peer.name(), runtime_.settings().duration("heartbeat-timeout").count());
  failure_detector_.mark_dead(rank);
  peer.send(transport::kFenced, {});  // for when it resumes
  returning_.forget(peer);
  lose_worker(peer, /*may_live=*/true);
}

/// Closures of a lost worker wait for every ps.
void Coordinator::look_for_silent_ps() {
  const auto overdue = dispatcher_.overdue();
  // One that is away has --ps-wait, and then a spare has its time.
  if (!overdue || queue_->broken() || away_.contains(overdue->ps)) return;
  queue_->break_down(
      Code::unavailable,
      fmt::format("waited {} ms for {} to apply what {} had pushed before it was lost; start again with "
                  "--resume to go on from the last checkpoint",
                  runtime_.wait_timeout().count(), runtime_.name_of(overdue->ps),
                  runtime_.name_of(overdue->worker)));
}

void Coordinator::lose_worker(transport::Peer& peer, bool may_live) {
  const auto closures = dispatcher_.lose(peer, tell_every_ps_of_death({peer.rank(), may_live ? 1 : 0}),
                                         transport::deadline_in(runtime_.wait_timeout()));
  if (!closures) return;
  metrics_.count_lost(runtime_.member(peer.rank()));
  members_changed_ = true;
  log::warn("{} is gone; its {} functions run elsewhere, {} workers are left", peer.name(), *closures,
            dispatcher_.alive());
  when_alone(peer);
}

/// All that it ran has ended, and has been applied; it has nothing to lose.
void Coordinator::let_go(transport::Peer& peer) {
  const std::uint64_t ended = dispatcher_.ended(peer);
  (void)dispatcher_.lose(peer, tell_every_ps_of_death({peer.rank(), 0}),
                         transport::deadline_in(runtime_.wait_timeout()));
  failure_detector_.mark_dead(peer.rank());
  members_changed_ = true;
  peer.send(transport::kShutdown, {});
  log::info("{} has left after {} functions, {} workers are left", peer.name(), ended, dispatcher_.alive());
  when_alone(peer);
}

void Coordinator::when_alone(const transport::Peer& last) {
  if (dispatcher_.alive() > 0) return;
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
  if (dispatcher_.alive() > 0) {
    alone_until_.reset();
  } else if (std::chrono::steady_clock::now() >= *alone_until_) {
    alone_until_.reset();
    queue_->break_down(
        Code::unavailable,
        fmt::format("{} is gone, no worker is left, and none has come within {} ms (--worker-wait)",
                    last_lost_, runtime_.settings().duration("worker-wait").count()));
  }
}

}  // namespace capstan::coordinator
