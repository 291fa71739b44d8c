// save_actor.hpp -- saves of all ps while workers train.
#pragma once

#include <memory>
#include <vector>

#include "simulate/coordinator_actor.hpp"
#include "simulate/ps_actor.hpp"

namespace capstan::simulate {

/// Models a save in the background (src/checkpoint/checkpoint_writer.cpp): the coordinator sends a request to
/// every ps. A thread of the ps writes its rows at `bandwidth` bytes/s; until it ends, a row that changes is
/// copied first. The arguments of the constructor must outlive it.
class SaveActor {
 public:
  SaveActor(Simulation& simulation, CoordinatorActor& coordinator, std::vector<std::unique_ptr<PsActor>>& ps,
            const JobModel& job, const Constants& constants)
      : simulation_(simulation), coordinator_(coordinator), ps_(ps), job_(job), constants_(constants) {}

  /// Starts a save of `bytes` on each ps now. Calls `saved` when the last ps has reported its end.
  void save(double bytes, double bandwidth, const Simulation::Action& saved) {
    coordinator_.receive(job_.ps * constants_.message, [this, bytes, bandwidth, saved] {
      const auto open = std::make_shared<std::size_t>(ps_.size());
      for (const std::unique_ptr<PsActor>& each : ps_) {
        PsActor& ps = *each;
        ps.control(constants_.message, [this, &ps, open, bytes, bandwidth, saved] {
          const double seconds = bytes / bandwidth;
          ps.save_until(simulation_.now() + seconds);
          simulation_.after(seconds, [this, open, saved] {
            if (--*open == 0) coordinator_.receive(job_.ps * constants_.message, saved);
          });
        });
      }
    });
  }

 private:
  Simulation& simulation_;
  CoordinatorActor& coordinator_;
  std::vector<std::unique_ptr<PsActor>>& ps_;
  const JobModel& job_;
  const Constants& constants_;
};

}  // namespace capstan::simulate
