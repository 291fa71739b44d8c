// thread.hpp -- a thread that executes one task at a time on the cores of its host.
#pragma once

#include <deque>

#include "simulate/constants.hpp"
#include "simulate/queue.hpp"
#include "simulate/random_source.hpp"

namespace capstan::simulate {

/// Executes tasks in the order of their arrival. Each task waits for a core of the host. Models
/// src/base/backoff.hpp: a thread without a task polls, and yields its core after a number of polls. After
/// the poll time it sleeps, and must wake up for its next task. The arguments of the constructor must outlive
/// the thread, and the thread all actions of the simulation.
class Thread {
 public:
  Thread(Simulation& simulation, Queue& cores, const Constants& constants, RandomSource& random)
      : simulation_(simulation), cores_(cores), constants_(constants), random_(random) {}
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  /// Executes a task of `seconds`, and then calls `done`.
  void run(double seconds, Simulation::Action done);
  /// Makes the thread sleep after its task, without polling, until wake(). Called by the end of a task.
  void block() noexcept { blocked_ = true; }
  /// Wakes the thread up, as a timer does.
  void wake() noexcept {
    blocked_ = false;
    idle_since_ = simulation_.now();
  }
  /// Mean number of tasks that waited or ran, over the time since the start.
  double mean_tasks() const noexcept;
  /// Seconds of the tasks that have ended.
  double busy() const noexcept { return busy_; }

 private:
  struct Task {
    double seconds;
    Simulation::Action done;
  };

  void compete();
  double begin();
  void end();
  void account();

  Simulation& simulation_;
  Queue& cores_;
  const Constants& constants_;
  RandomSource& random_;
  std::deque<Task> tasks_;
  bool competes_ = false;  // waits for a core, has one, or wakes up
  bool runs_ = false;      // a task has the core, not a poll
  bool blocked_ = false;
  double idle_since_ = 0;
  double busy_ = 0;
  double accounted_ = 0;  // time up to which the area counts
  double area_ = 0;       // tasks x seconds
};

}  // namespace capstan::simulate
