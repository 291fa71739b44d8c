// ps_recovery.hpp -- handles dead and silent ps until their agents restart them or spares replace them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cluster/membership/failure_detector.hpp"
#include "cluster/runtime.hpp"
#include "coordinator/recovery/failover_manager.hpp"
#include "coordinator/recovery/job_record.hpp"
#include "coordinator/recovery/restarted_workers.hpp"
#include "coordinator/scheduling/closure_queue.hpp"
#include "coordinator/scheduling/dispatcher.hpp"
#include "strategy/strategy.hpp"
#include "transport/fabric.hpp"

namespace capstan::coordinator {

/// Used by the thread that drives the control loop, except FailoverManager's functions for any thread.
class PsRecovery {
 public:
  /// All members outlive this object.
  struct Services {
    cluster::Runtime& runtime;
    strategy::Strategy& strategy;
    ClosureQueue& queue;
    Dispatcher& dispatcher;
    RestartedWorkers& restarted_workers;
    cluster::FailureDetector& failure_detector;
    JobRecord& record;
  };

  explicit PsRecovery(const Services& services);

  FailoverManager& failovers() noexcept { return failovers_; }
  const FailoverManager& failovers() const noexcept { return failovers_; }

  // Handlers of kPsReturned (from a ps) and kNotTakenOver (from a spare). They store the message for
  // advance().
  void note_returned(const transport::Message& message);
  void note_failed_spare(const transport::Message& message);
  /// Handler of kReplicaLost: lets the ps continue without its replica, unless that has replaced it.
  void drop_replica(const transport::Message& message);

  /// Records the death of a ps and ends saves that wait for it. Breaks the queue down if the ps can neither
  /// be restarted nor replaced. Does nothing if the death was recorded before.
  void lose(const transport::Peer& peer, const std::string& cause);
  /// Admits ps that have returned, and starts the failover of ps that have not returned in time. Returns true
  /// if a ps has returned. Called in each round, outside of progress().
  bool advance();

 private:
  void admit(const cluster::Member& ps, std::uint32_t incarnation);
  void replace_overdue();
  cluster::Membership::Clock::time_point deadline_of(const cluster::Membership::Status& ps) const;
  std::vector<std::int32_t> lost_workers() const;

  Services services_;
  cluster::Membership& members_;
  FailoverManager failovers_;
  std::vector<std::pair<cluster::Member, std::uint32_t>> returned_;  // ps and incarnation
  std::vector<std::pair<int, std::string>> failed_spares_;           // rank and reason
};

}  // namespace capstan::coordinator
