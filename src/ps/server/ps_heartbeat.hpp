// ps_heartbeat.hpp -- heartbeats of a ps, to the coordinator and to its agent, and the coordinator's silence.
#pragma once

#include <chrono>
#include <cstdint>

#include "cluster/membership/failure_detector.hpp"
#include "cluster/runtime.hpp"
#include "transport/fabric.hpp"

namespace capstan::ps {

/// To the coordinator from its first kHeartbeat on, to the agent always. Used by the ps's thread.
class PsHeartbeat {
 public:
  using Clock = std::chrono::steady_clock;

  /// `incarnation` may change, and must outlive this object.
  PsHeartbeat(cluster::Runtime& runtime, const std::uint32_t& incarnation);
  /// Handler of kHeartbeat: it has heard this ps, or will listen no more.
  void take(const transport::Message& message);
  /// Sends a heartbeat once a period; called in each turn. The agent kills a ps that stops beating as soon as
  /// the coordinator has certainly given it up.
  void beat();
  /// Before work that takes longer than the period: silence means nothing until the next beat.
  void be_busy();
  /// Nothing has come from the coordinator for --wait-timeout, though it was told to answer.
  bool is_alone();
  /// The last beat: what is left to do takes no longer than --wait-timeout.
  void end();
  /// There is a new coordinator, which has not spoken yet.
  void excuse() { coordinator_detector_.forget(coordinator_rank_); }
  /// The longest sleep between two beats.
  std::chrono::milliseconds period() const noexcept;

 private:
  void send(bool busy);

  cluster::Runtime& runtime_;
  const std::uint32_t& incarnation_;
  std::chrono::milliseconds period_;
  std::chrono::milliseconds most_silence_{0};  // for the agent
  int coordinator_rank_;
  cluster::FailureDetector coordinator_detector_;
  Clock::time_point next_{};
};

}  // namespace capstan::ps
