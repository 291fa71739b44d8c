// ps_actor.cpp -- time of a ps for the reads and pushes of a step.
#include "simulate/ps_actor.hpp"

#include <utility>

namespace capstan::simulate {
namespace {

double update_seconds(const JobModel& job, const Constants& constants, double rows) {
  return constants.apply + Constants::of_rows(constants.apply_row, rows, job.dim);
}

}  // namespace

double ps_read_seconds(const JobModel& job, const Constants& constants, double rows) {
  if (!job.by_messages()) return 0;
  const double pieces = std::max(1.0, rows * 4 * job.dim / kMessageBytes);
  return (1 + pieces) * constants.message + Constants::of_rows(constants.serve_row, rows, job.dim);
}

/// By messages, a push arrives in pieces and is acknowledged. Otherwise the ps finds it in a ring.
double ps_push_seconds(const JobModel& job, const Constants& constants, double rows) {
  const double update = update_seconds(job, constants, rows);
  if (!job.by_messages()) return update + constants.poll_ring;
  const double pieces = std::max(1.0, rows * (4 * job.dim + 4) / kMessageBytes);
  return update + (pieces + 1) * constants.message;
}

PsActor::PsActor(Simulation& simulation, Host& host, const JobModel& job, const Constants& constants,
                 RandomSource& random, int index)
    : simulation_(simulation),
      host_(host),
      job_(job),
      constants_(constants),
      rows_(job.rows_on(index)),
      pushed_(job.pushed_on(index)),
      stands_for_(job.ps_like(index)),
      thread_(simulation, host.cores, constants, random) {}

void PsActor::read(Simulation::Action ready) {
  thread_.run(ps_read_seconds(job_, constants_, rows_), std::move(ready));
}

void PsActor::push(Simulation::Action applied) {
  const bool copies = simulation_.now() < save_end_;
  const double copy = copies ? Constants::of_rows(constants_.serve_row, pushed_, job_.dim) : 0;
  if (job_.by_messages()) {
    return thread_.run(copy + ps_push_seconds(job_, constants_, pushed_), std::move(applied));
  }
  int& pushes = turn_pushes_ == 0 ? turn_pushes_ : next_pushes_;
  const double polls = pushes++ == 0 ? job_.workers * constants_.poll_ring : 0;
  thread_.run(polls + copy + update_seconds(job_, constants_, pushed_), [this, applied = std::move(applied)] {
    if (--turn_pushes_ == 0) turn_pushes_ = std::exchange(next_pushes_, 0);
    applied();
  });
}

void PsActor::control(double seconds, Simulation::Action done) { thread_.run(seconds, std::move(done)); }

}  // namespace capstan::simulate
