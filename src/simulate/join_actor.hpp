// join_actor.hpp -- a worker that joins a running job.
#pragma once

#include <memory>
#include <vector>

#include "simulate/coordinator_actor.hpp"
#include "simulate/network.hpp"
#include "simulate/ps_actor.hpp"

namespace capstan::simulate {

/// Models src/coordinator/recovery/late_workers.cpp: the coordinator sends the table of members to the worker
/// and the new member to every ps, which connects to it and confirms; then the worker connects to every ps.
/// The arguments of the constructor must outlive it.
class JoinActor {
 public:
  JoinActor(Simulation& simulation, CoordinatorActor& coordinator, std::vector<std::unique_ptr<PsActor>>& ps,
            Host& host, const JobModel& job, const Constants& constants)
      : simulation_(simulation),
        coordinator_(coordinator),
        ps_(ps),
        host_(host),
        job_(job),
        constants_(constants) {}

  /// Starts the join now. Calls `joined` when the worker may receive closures.
  void join(const Simulation::Action& joined) {
    const double ranks = job_.workers + job_.ps + 1;
    const double sends = constants_.connection +
                         (job_.ps + ranks * constants_.member_bytes / kMessageBytes) * constants_.message;
    coordinator_.receive(sends, [this, ranks, joined] {
      const double table = ranks * constants_.member_bytes;
      transfer(coordinator_.host(), host_, {table, table}, [this, joined] { introduce(joined); });
    });
  }

 private:
  void introduce(const Simulation::Action& joined) {
    const auto open = std::make_shared<std::size_t>(ps_.size());
    for (const std::unique_ptr<PsActor>& ps : ps_) {
      ps->control(constants_.connection + constants_.message, [this, open, joined] {
        if (--*open > 0) return;
        coordinator_.receive(job_.ps * constants_.message,
                             [this, joined] { simulation_.after(job_.ps * constants_.connection, joined); });
      });
    }
  }

  Simulation& simulation_;
  CoordinatorActor& coordinator_;
  std::vector<std::unique_ptr<PsActor>>& ps_;
  Host& host_;
  const JobModel& job_;
  const Constants& constants_;
};

}  // namespace capstan::simulate
