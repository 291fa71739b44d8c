// coordinator_recovery.cpp -- how a restarted coordinator resumes the job.
#include <algorithm>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "coordinator/coordinator.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::coordinator {

/// Connects to all ranks and adds the workers by index. In a restarted coordinator, some may be lost.
void Coordinator::add_workers() {
  for (const cluster::Member& member : runtime_.members()) {
    // The transport reports a death only on a connection that has been used in both directions.
    const bool former_spare = member.role == Role::spare && !ps_recovery_.failovers().is_standby(member.rank);
    if (member.role != Role::coordinator && !former_spare &&
        (member.role != Role::worker || runtime_.incarnation() == 0))
      runtime_.control_peer(member).send(transport::kHello, {});
    if (member.role == Role::ps)
      runtime_.control_peer(member).send(transport::kHeartbeat,
                                         transport::as_bytes(protocol::PsHeartbeatHeader{}));
  }
  for (const int rank : members_.worker_ranks()) {
    transport::Peer& peer = runtime_.control_peer(members_.member(rank));
    if (members_.is_lost(rank)) peer.disconnect();
    dispatcher_.add(peer);
  }
}

/// Dispatches nothing before it is certain which pushes count: every worker has ended its closures or is
/// fenced, and every ps has applied their pushes.
void Coordinator::recover() {
  record_.recover();
  queue_->number_pinned_from(static_cast<std::uint64_t>(runtime_.incarnation()) << 40);
  const auto silent = [this] {
    std::vector<transport::Peer*> peers;
    for (int index = 0; index < dispatcher_.workers(); ++index) {
      transport::Peer* peer = dispatcher_.worker(index);
      if (members_.is_alive(peer->rank()) && !strategy_.recovery().has_answered(peer->rank()))
        peers.push_back(peer);
    }
    return peers;
  };
  runtime_.control().progress();  // reports failures that occurred before this object existed
  transport::progress_until(runtime_.control(), strategy_.recovery().deadline(),
                            [&] { return silent().empty() || queue_->broken(); });
  for (transport::Peer* peer : silent()) {
    log::warn("{} has not ended the closures of the previous coordinator within {} ms (--coordinator-wait)",
              peer->name(), runtime_.coordinator_wait().count());
    peer->send(transport::kFenced, {});  // received if the worker resumes
    (void)lose(*peer, cluster::MemberState::fenced, "its closures had not ended (--coordinator-wait)");
  }
  transport::progress_until(runtime_.control(), transport::deadline_in(runtime_.wait_timeout()),
                            [&] { return !dispatcher_.has_unapplied() || queue_->broken(); });
  check_silent_ps();
  if (queue_->broken()) return;  // every call throws the reason
  record_.record_members();
  log::info("the coordinator resumes with {} workers", workers());
}

}  // namespace capstan::coordinator
