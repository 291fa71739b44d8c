// coordinator_recovery.cpp -- a coordinator that is started again in place of one that was killed, and what
// it leaves to the next.
#include <algorithm>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "coordinator/coordinator.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::coordinator {

/// All that there are, in the order of their indices. Of an earlier process's some may be lost.
void Coordinator::add_workers() {
  for (const cluster::Member& member : runtime_.members()) {
    // Traffic both ways is what makes either end's death visible to the other.
    const bool no_spare_any_more = member.role == Role::spare && !ps_recovery_.failovers().waits(member.rank);
    if (member.role != Role::coordinator && !no_spare_any_more &&
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

/// Nothing is dispatched before it is certain what of each closure counts: every worker has ended what it
/// ran, or is fenced off, and every ps has applied what they had pushed.
void Coordinator::recover() {
  record_.recover();
  queue_->number_for_one_from(static_cast<std::uint64_t>(runtime_.incarnation()) << 40);
  const auto silent = [this] {
    std::vector<transport::Peer*> peers;
    for (int index = 0; index < dispatcher_.workers(); ++index) {
      transport::Peer* peer = dispatcher_.worker(index);
      if (members_.is_alive(peer->rank()) && !strategy_.recovery().has_answered(peer->rank()))
        peers.push_back(peer);
    }
    return peers;
  };
  runtime_.control().progress();  // reports the failures of the time before there was a coordinator
  transport::progress_until(runtime_.control(), strategy_.recovery().deadline(),
                            [&] { return silent().empty() || queue_->broken(); });
  for (transport::Peer* peer : silent()) {
    log::warn(
        "{} has not ended within {} ms (--coordinator-wait) what it ran for the coordinator that was killed",
        peer->name(), runtime_.coordinator_wait().count());
    peer->send(transport::kFenced, {});  // for when it does
    (void)lose(*peer, cluster::MemberState::fenced, "it had not ended what it ran (--coordinator-wait)");
  }
  transport::progress_until(runtime_.control(), transport::deadline_in(runtime_.wait_timeout()),
                            [&] { return !dispatcher_.any_open() || queue_->broken(); });
  look_for_silent_ps();
  if (queue_->broken()) return;  // every call says why
  record_.record_members();
  log::info("the coordinator goes on with {} workers", workers());
}

}  // namespace capstan::coordinator
