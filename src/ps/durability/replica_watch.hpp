// replica_watch.hpp -- decides when a ps has to continue without its replica.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "cluster/membership/failure_detector.hpp"
#include "ps/durability/replica_stream.hpp"

namespace capstan::ps {

/// Watches the replica of a ps. A replica that fails, diverges or does not acknowledge records in time is
/// abandoned: the ps requests the coordinator's consent to continue without it, since the replica may be
/// about to replace this ps. Used by the ps's thread only.
///
///   followed --abandon, no answer--> abandoned --consent--> dropped
///   abandoned --no consent within the wait timeout--> consent_overdue
class ReplicaWatch {
 public:
  using Clock = cluster::FailureDetector::Clock;
  using Time = cluster::FailureDetector::Time;
  struct Timeouts {
    Time silence;  // for a replica that has responded before; 0: unlimited
    Time wait;     // for a replica that may still be starting, and for the coordinator's consent
  };

  /// `request_drop` asks the coordinator for its consent. It is called by abandon() and poll().
  ReplicaWatch(ReplicaStream& stream, Timeouts timeouts, std::function<void()> request_drop);

  /// Handles a kReplicated message.
  void on_progress(const protocol::ReplicaProgress& progress, Clock::time_point now);
  /// Stops waiting for the replica. `why` is logged. Does nothing if it was abandoned before.
  void abandon(const std::string& why, Clock::time_point now);
  /// Called in each turn of the loop. While `coordinator_connected` is false, no consent is requested or due,
  /// because a restarting coordinator discards requests.
  void poll(Clock::time_point now, bool coordinator_connected);
  /// A new coordinator is connected: requests its consent if it is still missing.
  void on_coordinator_returned(Clock::time_point now);

  /// Returns true once all records sent count as applied by the replica. An abandoned replica may have
  /// acknowledged every record and still differ from this ps, so it is settled only once it is dropped.
  bool settled() const noexcept { return stream_.dropped() || (!abandoned_ && !stream_.has_pending()); }
  /// Returns true once this ps has to stop: without consent, the replica may have replaced it.
  bool consent_overdue() const noexcept { return consent_overdue_; }

 private:
  Time timeout() const;
  void request(Clock::time_point now);

  ReplicaStream& stream_;
  Timeouts timeouts_;
  std::function<void()> request_drop_;
  cluster::FailureDetector detector_;           // watches the replica while records are pending
  std::optional<Clock::time_point> abandoned_;  // first request for consent
  Clock::time_point requested_{};               // last request for consent
  bool consent_overdue_ = false;
};

}  // namespace capstan::ps
