// ps_heartbeat.hpp -- heartbeats of a ps to the coordinator and to its agent, and detection of a silent
// coordinator.
#pragma once

#include <chrono>
#include <cstdint>

#include "cluster/membership/failure_detector.hpp"
#include "cluster/runtime.hpp"
#include "transport/fabric.hpp"

namespace capstan::ps {

/// Sends heartbeats to the agent from the start, and to the coordinator once its first kHeartbeat has
/// arrived. Does nothing if the ranks are threads of one process. Used by the ps's thread only.
class PsHeartbeat {
 public:
  using Clock = std::chrono::steady_clock;

  /// `incarnation`: read for each heartbeat; must outlive this object, as must `runtime`.
  PsHeartbeat(cluster::Runtime& runtime, const std::uint32_t& incarnation);
  /// Handles a kHeartbeat message. One with a header acknowledges a heartbeat of this ps; one without ends
  /// the monitoring.
  void receive(const transport::Message& message);
  /// Sends a heartbeat once per period; called in each turn of the loop. The agent kills a ps that stops
  /// beating, but not before the coordinator has declared it dead.
  void beat();
  /// Announces work that may take longer than the period: until the next beat, silence does not count.
  void announce_work();
  /// Returns true if the coordinator has not answered heartbeats for --wait-timeout.
  bool coordinator_is_silent();
  /// Sends the last heartbeat to the agent, which kills this process unless it exits within --wait-timeout.
  void end();
  /// Stops monitoring the coordinator until its next heartbeat.
  void forget_coordinator() { coordinator_detector_.forget(coordinator_rank_); }
  /// Returns the longest time that the loop may sleep between two heartbeats.
  std::chrono::milliseconds period() const noexcept;

 private:
  void send(bool busy);

  cluster::Runtime& runtime_;
  const std::uint32_t& incarnation_;
  std::chrono::milliseconds period_;
  std::chrono::milliseconds agent_timeout_{0};  // after which the agent kills this process; 0: never
  int coordinator_rank_;
  cluster::FailureDetector coordinator_detector_;
  Clock::time_point next_{};
};

}  // namespace capstan::ps
