// replication.cpp -- executes requests on the replica and on the ps, and compares the outcomes.
#include "ps/durability/replication.hpp"

#include <utility>

#include "capstan/error.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::ps {

Replication::Replication(cluster::Runtime& runtime, ReceiveUntil receive_until)
    : fabric_(runtime.control()), receive_until_(std::move(receive_until)) {
  if (!runtime.ps_have_replicas() || runtime.self().role != Role::ps) return;
  stream_ = std::make_unique<ReplicaStream>(
      runtime.control_peer(runtime.member(Role::spare, runtime.self().index)));
  watch_ = std::make_unique<ReplicaWatch>(
      *stream_,
      ReplicaWatch::Timeouts{.silence = runtime.settings().duration("heartbeat-timeout"),
                             .wait = runtime.wait_timeout()},
      [&runtime] {
        runtime.control_peer(runtime.member(Role::coordinator, 0)).send(transport::kReplicaLost, {});
      });
}

void Replication::serve() {
  fabric_.on_message(transport::kReplicated, [this](const transport::Message& message) {
    const auto progress = transport::read_header<protocol::ReplicaProgress>(message);
    if (progress && watch_) watch_->on_progress(*progress, ReplicaWatch::Clock::now());
  });
  // The coordinator has ruled out a failover to the replica, so the replica exits when fenced. Otherwise it
  // would wait until the end of the job.
  fabric_.on_message(transport::kReplicaDropped, [this](const transport::Message&) {
    if (!stream_ || stream_->dropped()) return;
    stream_->drop();
    if (!stream_->peer().failed()) stream_->peer().send(transport::kFenced, {});
  });
}

std::vector<std::byte> Replication::execute(std::uint16_t type, int from, transport::Bytes request,
                                            const Request& handler) {
  if (!stream_ || stream_->dropped()) return handler(from, request);
  const std::uint64_t refused = stream_->refused();
  stream_->call(type, from, request);
  await_applied();
  const bool replica_refused = !stream_->dropped() && stream_->refused() != refused;
  try {
    std::vector<std::byte> reply = handler(from, request);
    if (replica_refused) {
      abandon("it rejected a request that succeeded on the ps");
      await_applied();
    }
    return reply;
  } catch (const Error&) {
    if (!replica_refused && !stream_->dropped()) {
      abandon("it accepted a request that failed on the ps");
      await_applied();
    }
    throw;
  }
}

void Replication::await_applied() {
  receive_until_([this] {
    stream_->flush();  // also records that were added during the wait
    return watch_->settled();
  });
}

void Replication::send(std::uint16_t type, int from, transport::Bytes request) {
  if (stream_) stream_->call(type, from, request);
}

void Replication::when_safe(std::function<void()> then) {
  if (!stream_) return then();
  stream_->when_safe(std::move(then));
}

void Replication::abandon(const std::string& why) {
  if (watch_) watch_->abandon(why, ReplicaWatch::Clock::now());
}

bool Replication::poll(bool coordinator_connected) {
  if (!stream_) return false;
  watch_->poll(ReplicaWatch::Clock::now(), coordinator_connected);
  return stream_->advance();
}

void Replication::on_coordinator_returned() {
  if (watch_) watch_->on_coordinator_returned(ReplicaWatch::Clock::now());
}

}  // namespace capstan::ps
