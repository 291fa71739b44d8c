// worker_heartbeat.hpp -- sends a worker's heartbeats, and monitors the coordinator's replies.
#pragma once

#include <chrono>

#include "cluster/membership/failure_detector.hpp"
#include "cluster/runtime.hpp"
#include "transport/fabric.hpp"

namespace capstan::coordinator {

/// Sends heartbeats to the coordinator and to the worker's agent, except in an embedded cluster or with
/// --heartbeat-timeout=0. Used by the thread that drives the control fabric.
class WorkerHeartbeat {
 public:
  using Clock = std::chrono::steady_clock;

  explicit WorkerHeartbeat(cluster::Runtime& runtime);

  /// Sends a heartbeat if one is due. Returns when the next one is due; Clock::time_point::max() if never.
  Clock::time_point send(transport::Peer& coordinator, Clock::time_point now);
  /// Records a reply of the coordinator. The first reply starts the monitoring.
  void heard(int coordinator, Clock::time_point now) { detector_.heard(coordinator, now); }
  /// Stops the monitoring until the restarted coordinator replies.
  void forget(int coordinator) { detector_.forget(coordinator); }
  /// Returns true if the coordinator has replied before, but not within the last --wait-timeout.
  bool suspects(int coordinator, Clock::time_point now);

 private:
  std::chrono::milliseconds period_;  // 0: no heartbeats
  std::chrono::milliseconds
      deadline_of_next_;  // the agent kills this process if no heartbeat follows by then
  Clock::time_point next_{};
  cluster::FailureDetector detector_;
};

}  // namespace capstan::coordinator
