// worker_actor.cpp -- the parts of a step, and the messages of each.
#include "simulate/worker_actor.hpp"

#include <utility>

#include "simulate/network.hpp"

namespace capstan::simulate {
namespace {

constexpr double kSmallMessage = 64;  // bytes of a request or an acknowledgment without rows

double lookup_seconds(const JobModel& job, const Constants& constants) {
  const double rows = Constants::of_rows(constants.lookup_row, job.batch, job.dim);
  return constants.step / 2 + rows + (job.by_messages() ? job.ps * constants.message : 0);
}

double rows_received_seconds(const JobModel& job, const Constants& constants) {
  return job.by_messages() ? job.ps * job.read_pieces() * constants.message : 0;
}

double push_call_seconds(const JobModel& job, const Constants& constants) {
  const double rows = Constants::of_rows(constants.push_row, job.batch, job.dim);
  return rows + (job.by_messages() ? job.ps * job.push_pieces() * constants.message : 0);
}

double flush_seconds(const JobModel& job, const Constants& constants) {
  return constants.step / 2 + (job.by_messages() ? job.ps * constants.message : 0);
}

}  // namespace

double worker_step_seconds(const JobModel& job, const Constants& constants) {
  return lookup_seconds(job, constants) + rows_received_seconds(job, constants) +
         push_call_seconds(job, constants) + flush_seconds(job, constants);
}

WorkerActor::WorkerActor(Simulation& simulation, Host& host, const JobModel& job, const Constants& constants,
                         RandomSource& random, int index, std::vector<std::unique_ptr<PsActor>>& ps,
                         StepClock& clock, StepTimes& times, std::function<void(int)> finish)
    : simulation_(simulation),
      host_(host),
      job_(job),
      constants_(constants),
      index_(index),
      ps_(ps),
      clock_(clock),
      times_(times),
      finish_(std::move(finish)),
      thread_(simulation, host.cores, constants, random) {}

void WorkerActor::receive_closure() {
  if (++closures_ == 1) begin();
}

void WorkerActor::begin() {
  clock_.begin(index_, [this] {
    // Until the thread runs, the time is that of the closure's arrival, not part of the step.
    thread_.run(0, [this] {
      began_ = simulation_.now();
      look_up();
    });
  });
}

void WorkerActor::look_up() {
  thread_.run(lookup_seconds(job_, constants_), [this] {
    if (job_.one_host) return compute();
    for_each_ps(4, 4 * job_.dim, /*pushes=*/false, [this] {
      const double seconds = rows_received_seconds(job_, constants_);
      if (seconds > 0) return thread_.run(seconds, [this] { compute(); });
      compute();
    });
  });
}

void WorkerActor::compute() {
  if (job_.paced) {
    thread_.block();
    return simulation_.after(job_.compute + constants_.timer, [this] {
      thread_.wake();
      push();
    });
  }
  thread_.run(job_.compute, [this] { push(); });
}

void WorkerActor::push() {
  pushed_ = simulation_.now();
  thread_.run(push_call_seconds(job_, constants_),
              [this] { for_each_ps(4 * job_.dim + 4, 0, /*pushes=*/true, [this] { end(); }); });
}

/// Sends a message to every simulated ps, has it processed, and calls `done` after the last reply. `sent` and
/// `received` are bytes per row.
void WorkerActor::for_each_ps(double sent, double received, bool pushes, const Simulation::Action& done) {
  const auto open = std::make_shared<std::size_t>(ps_.size());
  for (const std::unique_ptr<PsActor>& each : ps_) {
    PsActor& ps = *each;
    const double rows = pushes ? ps.pushed() : ps.rows();
    const double request = kSmallMessage + rows * sent;
    const double reply = kSmallMessage + rows * received;
    const auto replied = [open, done] {
      if (--*open == 0) done();
    };
    const auto answer = [this, &ps, reply, replied] {
      transfer(ps.host(), host_, {reply, reply * ps.stands_for()}, replied);
    };
    transfer(host_, ps.host(), {request * ps.stands_for(), request}, [&ps, pushes, this, answer] {
      if (pushes) {
        ps.push(answer);
      } else if (job_.rdma) {
        answer();
      } else {
        ps.read(answer);
      }
    });
  }
}

/// The thread polls for the end of the flush, and needs a core to see it.
void WorkerActor::end() {
  thread_.run(flush_seconds(job_, constants_), [this] {
    times_.steps.push_back(simulation_.now() - began_);
    times_.pushes.push_back(simulation_.now() - pushed_);
    clock_.end(index_);
    finish_(index_);
    if (--closures_ > 0) begin();
  });
}

}  // namespace capstan::simulate
