// ps_recovery.cpp -- admits a ps that was restarted, or replaces one that was not.
#include "coordinator/recovery/ps_recovery.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.hpp"
#include "capstan/serialize.hpp"
#include "protocol/ps_messages.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::coordinator {

using cluster::MemberState;

PsRecovery::PsRecovery(const Services& services)
    : services_(services),
      members_(services.runtime.membership()),
      failovers_(services.runtime, services.strategy.contents()) {}

void PsRecovery::note_returned(const transport::Message& message) {
  const auto returned = transport::read_header<protocol::PsReturned>(message);
  if (!returned) return;
  auto member = from_bytes<cluster::Member>(message.payload);
  const bool known = member.rank >= 0 && member.rank < static_cast<int>(services_.runtime.members().size());
  if (member.role == Role::ps && known) returned_.emplace_back(std::move(member), returned->incarnation);
}

void PsRecovery::note_failed_spare(const transport::Message& message) {
  const auto rank = transport::read_header<std::int32_t>(message);
  if (!rank) return;
  const auto* text = reinterpret_cast<const char*>(message.payload.data());
  failed_spares_.emplace_back(*rank, std::string(text, message.payload.size()));
}

void PsRecovery::drop_replica(const transport::Message& message) {
  const cluster::Member& ps = services_.runtime.member(message.from);
  if (ps.role != Role::ps) return;
  // If the replica has replaced it already, this ps counts as dead and receives nothing.
  if (failovers_.drop_replica(ps)) services_.runtime.control_peer(ps).send(transport::kReplicaDropped, {});
}

void PsRecovery::lose(const transport::Peer& peer, const std::string& cause) {
  // set() also returns false at the end of a fenced process, which changes nothing.
  if (!members_.set(peer.rank(), MemberState::dead, cause)) return;
  services_.failure_detector.forget(peer.rank());
  services_.strategy.save_progress().note_death(services_.runtime.member(peer.rank()).index, peer.name());
  failovers_.on_ps_dead(peer.rank());
  if (services_.runtime.ps_may_be_replaced()) {
    log::warn("{} is dead; its dependents block until it recovers", peer.name());
    return;
  }
  services_.runtime.give_up_ps();
  services_.queue.break_down(
      Code::unavailable,
      peer.name() +
          " is dead, and its shards are lost; restart the job with --resume to continue from the "
          "last checkpoint");
}

bool PsRecovery::advance() {
  const auto returned = std::exchange(returned_, {});
  for (const auto& [ps, incarnation] : returned) admit(ps, incarnation);
  if (!members_.all_alive(Role::ps)) replace_overdue();
  return !returned.empty();
}

void PsRecovery::admit(const cluster::Member& ps, std::uint32_t incarnation) {
  if (!failovers_.admits(ps, incarnation)) return;
  transport::Peer& peer = services_.runtime.control_peer(ps);
  lose(peer, "its agent has restarted it");  // the restart may be known before the death
  services_.runtime.reconnect_ps_on_control(ps);
  // Recorded before on_ps_complete(), which requires it, and before kHello, after which the ps relies on it.
  if (services_.runtime.coordinator_may_return()) services_.record.record_members();
  failovers_.on_ps_complete(ps.rank, incarnation);
  members_.set(ps.rank, MemberState::alive);
  peer.send(transport::kHello, {});
  peer.send(transport::kHeartbeat, transport::as_bytes(protocol::PsHeartbeatHeader{}));
  // Repeats the deaths of all lost workers, since the ps may have missed some. It acknowledges each.
  for (const std::int32_t rank : lost_workers()) {
    peer.send(transport::kWorkerDead, transport::as_bytes(protocol::WorkerDead{rank, 0}));
  }
  services_.restarted_workers.resend_requests(peer);
  log::info("{} has recovered", peer.name());
}

/// Returns the time from which a spare may replace the ps: after --ps-wait if the ps may be restarted.
cluster::Membership::Clock::time_point PsRecovery::deadline_of(const cluster::Membership::Status& ps) const {
  const auto wait = services_.runtime.settings().duration("ps-wait");
  const auto silence = services_.runtime.settings().duration("heartbeat-timeout");
  switch (ps.state) {
    case MemberState::suspected:
      return ps.since + std::max(wait - silence, {});  // both count from its last heartbeat
    case MemberState::dead:
      return ps.since + (services_.runtime.ps_may_return() ? wait : std::chrono::milliseconds(0));
    default:
      return ps.since;
  }
}

void PsRecovery::replace_overdue() {
  cluster::Runtime& runtime = services_.runtime;
  for (const auto& [rank, why] : std::exchange(failed_spares_, {})) failovers_.on_failover_failed(rank, why);
  if (runtime.ps_given_up()) return;
  const auto now = cluster::Membership::Clock::now();
  for (int index = 0; index < runtime.count(Role::ps); ++index) {
    const cluster::Member& ps = runtime.member(Role::ps, index);
    if (members_.is_alive(ps.rank) || now < deadline_of(members_.status(ps.rank))) continue;
    // Also for a ps that is only suspected: a save does not wait for a file that its process may still write.
    if (!failovers_.is_being_replaced(ps.rank))
      services_.strategy.save_progress().note_death(index, ps.name());
    const bool spares = runtime.count(Role::spare) > 0;
    if (spares && failovers_.advance(ps, lost_workers(), now)) continue;
    const std::string waited = runtime.ps_may_return()
                                   ? fmt::format(", and it has not recovered within {} ms (--ps-wait)",
                                                 runtime.settings().duration("ps-wait").count())
                                   : "";
    const std::string no_spare =
        spares ? fmt::format("; no spare has taken its place: {}", failovers_.failure_reason(ps.rank)) : "";
    runtime.give_up_ps();
    services_.queue.break_down(
        Code::unavailable,
        fmt::format("{} is dead, its shards are lost{}{}; restart the job with --resume to "
                    "continue from the last checkpoint",
                    ps.name(), waited, no_spare));
    return;
  }
}

/// Returns the ranks of workers whose pushes are no longer accepted.
std::vector<std::int32_t> PsRecovery::lost_workers() const {
  std::vector<std::int32_t> lost;
  for (int rank = 0; rank < services_.runtime.table().capacity(); ++rank) {
    if (members_.is_lost(rank) && members_.member(rank).role == Role::worker) lost.push_back(rank);
  }
  return lost;
}

}  // namespace capstan::coordinator
