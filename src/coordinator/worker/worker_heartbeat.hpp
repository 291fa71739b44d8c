// worker_heartbeat.hpp -- heartbeats of a worker, and those of the coordinator that answer them.
#pragma once

#include <chrono>

#include "cluster/membership/failure_detector.hpp"
#include "cluster/runtime.hpp"
#include "transport/fabric.hpp"

namespace capstan::coordinator {

/// Sends heartbeats to the coordinator and to the worker's agent; none in an embedded cluster, or where
/// --heartbeat-timeout is 0. Used by the thread that drives the control fabric.
class WorkerHeartbeat {
 public:
  using Clock = std::chrono::steady_clock;

  explicit WorkerHeartbeat(cluster::Runtime& runtime);

  /// Sends a heartbeat if one is due. Returns when the next one is due; Clock::time_point::max() if never.
  Clock::time_point send(transport::Peer& coordinator, Clock::time_point now);
  /// The coordinator has answered. It is watched from its first answer on.
  void heard(int coordinator, Clock::time_point now) { detector_.heard(coordinator, now); }
  /// Another coordinator replaces the previous one: it is not watched until it answers.
  void forget(int coordinator) { detector_.forget(coordinator); }
  /// Returns true if the coordinator was heard once, and has not answered for --wait-timeout since.
  bool suspects(int coordinator, Clock::time_point now);

 private:
  std::chrono::milliseconds period_;            // 0: no heartbeats
  std::chrono::milliseconds deadline_of_next_;  // after which the agent kills this process
  Clock::time_point next_{};
  cluster::FailureDetector detector_;
};

}  // namespace capstan::coordinator
