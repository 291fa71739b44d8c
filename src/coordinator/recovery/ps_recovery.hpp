// ps_recovery.hpp -- ps that die or fall silent, until their agent has restarted them or a spare has replaced
// them.
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

/// Used by the thread that drives the control loop, but for FailoverManager's functions for any thread.
class PsRecovery {
 public:
  /// All outlive this object.
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

  // Handlers of messages, which only note what arrived: kPsReturned of a ps, kNotTakenOver of a spare.
  void note_returned(const transport::Message& message);
  void note_failed_spare(const transport::Message& message);
  /// Handler of kReplicaLost: lets the ps continue without its replica, unless that has replaced it.
  void drop_replica(const transport::Message& message);

  /// The ps is dead: ends saves that wait for it. Breaks the queue down if nothing can replace it. Does
  /// nothing if this is known.
  void lose(const transport::Peer& peer, const std::string& cause);
  /// Called in each round, outside of progress(): admits ps that have returned, and starts the failover of
  /// those that have not in time. Returns true if one has returned.
  bool advance();

 private:
  void admit(const cluster::Member& ps, std::uint32_t incarnation);
  void replace_overdue();
  cluster::Membership::Clock::time_point deadline_of(const cluster::Membership::Status& ps) const;
  std::vector<std::int32_t> lost_workers() const;

  Services use_;
  cluster::Membership& members_;
  FailoverManager failovers_;
  std::vector<std::pair<cluster::Member, std::uint32_t>> returned_;  // with their incarnations
  std::vector<std::pair<int, std::string>> failed_spares_;           // with the reasons
};

}  // namespace capstan::coordinator
