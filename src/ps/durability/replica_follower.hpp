// replica_follower.hpp -- the replica's side of replication: follows its ps until a failover.
#pragma once

#include <chrono>
#include <optional>

#include "cluster/runtime.hpp"
#include "protocol/failover.hpp"
#include "ps/durability/replica_inbox.hpp"

namespace capstan::ps {

/// Inactive on a ps that is no replica, and after the failover: records that arrive then are neither applied
/// nor acknowledged. Used by the replica's thread only.
class ReplicaFollower {
 public:
  /// Longest time between two calls of `beat`.
  static constexpr std::chrono::milliseconds kHeartbeatPeriod{200};

  /// Records are applied to `sink`, which outlives this object; requests are executed by `replay`.
  ReplicaFollower(cluster::Runtime& runtime, protocol::PushSink& sink, ReplicaInbox::Replay replay);

  /// Starts to follow the ps with the same index. Registers the handlers of its records and of the
  /// coordinator's order to fail over.
  void begin();
  bool active() const noexcept { return active_; }
  /// The coordinator's order to fail over; nullopt until it has arrived.
  const std::optional<protocol::FailoverRequest>& order() const noexcept { return order_; }
  /// Sends a heartbeat to the agent. A replica sends none to the coordinator.
  void beat() const;
  /// Ends the heartbeats, and ignores any further order.
  void stop_waiting();

  /// Applies the records received so far: see ReplicaInbox::apply_some.
  bool apply_some() { return inbox_.apply_some(); }
  /// Ends the rank's pushes; one of which only a part has arrived stays incomplete.
  void close(int rank) { inbox_.close(rank); }
  /// Applies all received records and ends all pushes, since the ps is dead; this is the end of following.
  void fail_over();

 private:
  void send_progress(const protocol::ReplicaProgress& progress);

  cluster::Runtime& runtime_;
  ReplicaInbox inbox_;
  bool active_ = false;
  std::optional<protocol::FailoverRequest> order_;
};

}  // namespace capstan::ps
