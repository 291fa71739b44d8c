// job_simulation.hpp -- simulates the steps of a job.
#pragma once

#include <memory>
#include <vector>

#include "simulate/coordinator_actor.hpp"
#include "simulate/job_model.hpp"
#include "simulate/ps_actor.hpp"
#include "simulate/step_clock.hpp"
#include "simulate/worker_actor.hpp"

namespace capstan::simulate {

/// The ranks and hosts of a job. Control actors, such as HeartbeatActor, may be added before run().
class JobSimulation {
 public:
  /// Throws Error(invalid_argument) for a job without workers or ps, for negative or infinite values, and for
  /// a poll_slice between 0 and 100 ns.
  JobSimulation(const JobModel& job, const Constants& constants);
  JobSimulation(const JobSimulation&) = delete;
  JobSimulation& operator=(const JobSimulation&) = delete;

  const JobModel& job() const noexcept { return job_; }
  const Constants& constants() const noexcept { return constants_; }
  Simulation& simulation() noexcept { return simulation_; }
  RandomSource& random() noexcept { return random_; }
  CoordinatorActor& coordinator() noexcept { return *coordinator_; }
  std::vector<std::unique_ptr<PsActor>>& ps() noexcept { return ps_; }

  /// Runs all steps. Called once. Throws Error(invalid_argument) if the steps take no time.
  Prediction run();

 private:
  Host& host_of(int index, int ranks_per_host, std::vector<std::unique_ptr<Host>>& hosts);
  void end_step(int worker);
  void begin_to_count();
  void receive_result(int worker);

  /// State at a time. The difference of two is what happened in between.
  struct Snapshot {
    double time = 0;
    double steps = 0;        // that have ended, of all workers
    double processors = 0;   // seconds x busy share of the cores
    double ps_busy = 0;      // seconds
    double ps_tasks = 0;     // seconds x tasks
    double coordinator = 0;  // busy seconds
  };
  Snapshot snapshot() const;

  JobModel job_;
  Constants constants_;
  Simulation simulation_;
  RandomSource random_;
  StepTimes times_;
  StepClock clock_;
  std::vector<std::unique_ptr<Host>> coordinator_hosts_, ps_hosts_, worker_hosts_;
  std::vector<std::unique_ptr<PsActor>> ps_;
  std::unique_ptr<CoordinatorActor> coordinator_;
  std::vector<std::unique_ptr<WorkerActor>> workers_;
  std::uint64_t open_ = 0;  // closures whose results the coordinator has not received
  std::uint64_t closures_ = 0;
  std::vector<bool> warmed_up_;     // whether a worker has ended a step
  int cold_ = 0;                    // workers that have not
  std::uint64_t last_counted_ = 0;  // number of the last step that the rate counts
  Snapshot warm_up_, last_;  // when the last worker has ended its first step; after the last counted one
};

/// Simulates the job.
inline Prediction simulate_job(const JobModel& job, const Constants& constants) {
  return JobSimulation(job, constants).run();
}

}  // namespace capstan::simulate
