// ps_actor.hpp -- a ps: serves reads and applies pushes in one thread.
#pragma once

#include "simulate/host.hpp"
#include "simulate/job_model.hpp"
#include "simulate/thread.hpp"

namespace capstan::simulate {

/// Models src/ps/server/ps_server.cpp. Without messages, the ps serves pushes in turns: a turn polls the
/// rings of all workers once, and applies the pushes that have arrived during the previous turn. The first
/// push of a turn takes the time of these polls. The arguments of the constructor must outlive the ps.
class PsActor {
 public:
  /// `index`: number of the ps, which determines its rows of a step.
  PsActor(Simulation& simulation, Host& host, const JobModel& job, const Constants& constants,
          RandomSource& random, int index);

  Host& host() noexcept { return host_; }
  const Thread& thread() const noexcept { return thread_; }

  /// Serves the read of a step that has arrived by message; then calls `ready`.
  void read(Simulation::Action ready);
  /// Rows that a worker looks up here in a step, and those that it pushes.
  double rows() const noexcept { return rows_; }
  double pushed() const noexcept { return pushed_; }
  /// Number of ps of the job for which this one stands.
  double stands_for() const noexcept { return stands_for_; }
  /// Applies the push of a step; then calls `applied`.
  void push(Simulation::Action applied);
  /// Processes control messages of `seconds`; then calls `done`.
  void control(double seconds, Simulation::Action done);
  /// Until `end`, a row that changes is copied before it is written to a checkpoint.
  void save_until(double end) noexcept { save_end_ = end; }

 private:
  Simulation& simulation_;
  Host& host_;
  const JobModel& job_;
  const Constants& constants_;
  double rows_;
  double pushed_;
  double stands_for_;
  double save_end_ = 0;
  int turn_pushes_ = 0;  // of the current turn, not applied yet
  int next_pushes_ = 0;  // that the next turn will find
  Thread thread_;
};

/// Least seconds that a ps takes for a step of a worker, by the rows that are read or pushed. Without
/// messages, a turn applies a push of each worker, so that each push takes the poll of a ring.
double ps_read_seconds(const JobModel& job, const Constants& constants, double rows);
double ps_push_seconds(const JobModel& job, const Constants& constants, double rows);

}  // namespace capstan::simulate
