// replica_follower.hpp -- the replica's side of replication: follows its ps until a failover.
#pragma once

#include <chrono>
#include <optional>

#include "cluster/runtime.hpp"
#include "protocol/failover.hpp"
#include "ps/durability/replica_inbox.hpp"

namespace capstan::ps {

/// Inactive on a ps that is not a replica, and after the failover. Records that arrive while it is inactive
/// are neither applied nor acknowledged. Used by the replica's thread only.
class ReplicaFollower {
 public:
  /// Maximum time between two calls of `send_heartbeat`.
  static constexpr std::chrono::milliseconds kHeartbeatPeriod{200};

  /// Records are applied to `sink`, which outlives this object; requests are executed by `replay`.
  ReplicaFollower(cluster::Runtime& runtime, protocol::PushSink& sink, ReplicaInbox::Replay replay);

  /// Starts to follow the ps with the same index. Registers the handlers of its records and of the
  /// coordinator's failover request.
  void begin();
  bool active() const noexcept { return active_; }
  /// The coordinator's failover request; nullopt until it has arrived.
  const std::optional<protocol::FailoverRequest>& request() const noexcept { return request_; }
  /// Sends a heartbeat to the agent. A replica sends none to the coordinator.
  void send_heartbeat() const;
  /// Stops the heartbeats; a later failover request is ignored.
  void stop_heartbeats();

  /// Applies the records received so far: see ReplicaInbox::apply_some.
  bool apply_some() { return inbox_.apply_some(); }
  /// Ends all pushes of the rank. A push of which only a part was received stays incomplete.
  void close(int rank) { inbox_.close(rank); }
  /// Applies all received records, ends all pushes and becomes inactive. REQUIRES: the ps is dead.
  void fail_over();

 private:
  void send_progress(const protocol::ReplicaProgress& progress);

  cluster::Runtime& runtime_;
  ReplicaInbox inbox_;
  bool active_ = false;
  std::optional<protocol::FailoverRequest> request_;
};

}  // namespace capstan::ps
