// thread.hpp -- a thread that executes one task at a time on the cores of its host.
#pragma once

#include <deque>

#include "simulate/constants.hpp"
#include "simulate/queue.hpp"
#include "simulate/random_source.hpp"

namespace capstan::simulate {

/// Executes tasks in the order of their arrival. Each task waits for a core of the host. A thread that has
/// been idle for longer than the poll time sleeps, and must wake up first. Polling takes no core, since a
/// thread that polls yields to others. The arguments of the constructor must outlive the thread, and the
/// thread all actions of the simulation.
class Thread {
 public:
  Thread(Simulation& simulation, Queue& cores, const Constants& constants, RandomSource& random)
      : simulation_(simulation), cores_(cores), constants_(constants), random_(random) {}
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  /// Executes a task of `seconds`, and then calls `done`.
  void run(double seconds, Simulation::Action done);
  /// Wakes the thread up, as a timer does.
  void wake() noexcept { idle_since_ = simulation_.now(); }
  /// Mean number of tasks that waited or ran, over the time since the start.
  double mean_tasks() const noexcept;
  /// Seconds of the tasks that have ended.
  double busy() const noexcept { return busy_; }

 private:
  struct Task {
    double seconds;
    Simulation::Action done;
  };

  void start();
  void account();

  Simulation& simulation_;
  Queue& cores_;
  const Constants& constants_;
  RandomSource& random_;
  std::deque<Task> tasks_;
  double idle_since_ = 0;
  double busy_ = 0;
  double accounted_ = 0;  // time up to which the area counts
  double area_ = 0;       // tasks x seconds
};

}  // namespace capstan::simulate
