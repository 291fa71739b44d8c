// worker_actor.hpp -- a worker: executes its closures one after the other.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "simulate/host.hpp"
#include "simulate/job_model.hpp"
#include "simulate/ps_actor.hpp"
#include "simulate/step_clock.hpp"
#include "simulate/thread.hpp"

namespace capstan::simulate {

/// Times of the steps of all workers, in seconds.
struct StepTimes {
  std::vector<double> steps;
  std::vector<double> pushes;
};

/// Seconds of a worker's thread for a step, without its computation.
double worker_step_seconds(const JobModel& job, const Constants& constants);

/// Models a step of perf_scale: lookup, computation, push, flush, result. The arguments of the constructor
/// must outlive the worker.
class WorkerActor {
 public:
  /// `ps` are the simulated ones. `finish` is called with the index of the worker at the end of each closure.
  WorkerActor(Simulation& simulation, Host& host, const JobModel& job, const Constants& constants,
              RandomSource& random, int index, std::vector<std::unique_ptr<PsActor>>& ps, StepClock& clock,
              StepTimes& times, std::function<void(int)> finish);

  Host& host() noexcept { return host_; }
  const Thread& thread() const noexcept { return thread_; }

  /// Receives a closure. It waits until the previous ones have ended.
  void receive_closure();

 private:
  void begin();
  void look_up();
  void compute();
  void push();
  void end();
  void for_each_ps(double sent, double received, bool pushes, const Simulation::Action& done);

  Simulation& simulation_;
  Host& host_;
  const JobModel& job_;
  const Constants& constants_;
  int index_;
  std::vector<std::unique_ptr<PsActor>>& ps_;
  StepClock& clock_;
  StepTimes& times_;
  std::function<void(int)> finish_;
  Thread thread_;
  int closures_ = 0;  // received and not ended
  double began_ = 0;
  double pushed_ = 0;
};

}  // namespace capstan::simulate
