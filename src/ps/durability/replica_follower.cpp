// replica_follower.cpp -- messages and heartbeats of a replica.
#include "ps/durability/replica_follower.hpp"

#include <utility>

#include "capstan/serialize.hpp"
#include "cluster/supervisor/heartbeat.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::ps {

ReplicaFollower::ReplicaFollower(cluster::Runtime& runtime, protocol::PushSink& sink,
                                 ReplicaInbox::Replay replay)
    : runtime_(runtime), inbox_(sink, std::move(replay), [this](const protocol::ReplicaProgress& progress) {
        send_progress(progress);
      }) {}

void ReplicaFollower::begin() {
  active_ = true;
  runtime_.control().on_message(transport::kReplicate, [this](const transport::Message& message) {
    if (active_) inbox_.receive(message);
  });
  runtime_.control().on_message(transport::kFailover, [this](const transport::Message& message) {
    request_ = from_bytes<protocol::FailoverRequest>(message.payload);
  });
}

void ReplicaFollower::send_heartbeat() const {
  // The ps abandons a silent replica after one --heartbeat-timeout; the agent waits one longer.
  cluster::Heartbeat::beat(2 * runtime_.settings().duration("heartbeat-timeout"));
}

void ReplicaFollower::stop_heartbeats() {
  cluster::Heartbeat::pause();
  runtime_.control().on_message(transport::kFailover, [](const transport::Message&) {});
}

void ReplicaFollower::fail_over() {
  active_ = false;
  inbox_.end();
}

void ReplicaFollower::send_progress(const protocol::ReplicaProgress& progress) {
  runtime_.control_peer(runtime_.member(Role::ps, runtime_.self().index))
      .send(transport::kReplicated, transport::as_bytes(progress));
  if (progress.busy == 0) return;
  // Pauses the heartbeats, so that the agent does not take a long call for a hang.
  cluster::Heartbeat::pause();
  runtime_.control().progress();
}

}  // namespace capstan::ps
