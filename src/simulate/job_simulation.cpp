// job_simulation.cpp -- creates the ranks of a job and connects them.
#include "simulate/job_simulation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "capstan/error.hpp"
#include "simulate/network.hpp"

namespace capstan::simulate {
namespace {

constexpr double kResultBytes = 128;  // of a closure or its result, without arguments

void require(bool valid, const char* name, double found, const char* expected) {
  if (valid) return;
  throw Error(Code::invalid_argument,
              fmt::format("cannot simulate a job: {} is {}, expected {}", name, found, expected));
}

const JobModel& checked(const JobModel& job) {
  const auto counts = [](const char* name, int value) { require(value >= 1, name, value, "at least 1"); };
  const auto amounts = [](const char* name, double value) {
    require(std::isfinite(value) && value >= 0, name, value, "a finite number of at least 0");
  };
  counts("the number of workers", job.workers);
  counts("the number of ps", job.ps);
  counts("the number of workers per host", job.workers_per_host);
  counts("the number of ps per host", job.ps_per_host);
  counts("the number of closures that a worker holds", job.in_flight);
  counts("the number of steps", job.steps);
  counts("the number of simulated ps", job.most_simulated_ps);
  amounts("the batch", job.batch);
  amounts("the dimension", job.dim);
  amounts("the computation", job.compute);
  amounts("the heartbeat period", job.heartbeat_period);
  require(job.hottest_row >= 0 && job.hottest_row <= 1, "the share of the most frequent row", job.hottest_row,
          "a number from 0 to 1");
  require(job.rows >= 1, "the number of rows", job.rows, "at least 1");
  return job;
}

/// A shorter slice would need too many events.
constexpr double kLeastPollSlice = 100e-9;

const Constants& checked(const Constants& constants) {
  require(constants.poll_slice == 0 || constants.poll_slice >= kLeastPollSlice, "the constant poll_slice",
          constants.poll_slice, "0 or at least 1e-07 s");
  return constants;
}

}  // namespace

double quantile(std::vector<double> samples, double q) {
  if (samples.empty()) return 0;
  const double rank = std::ceil(q * static_cast<double>(samples.size()));
  const auto at = samples.begin() + static_cast<std::ptrdiff_t>(std::max(0.0, rank - 1));
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

JobSimulation::JobSimulation(const JobModel& job, const Constants& constants)
    : job_(checked(job)),
      constants_(checked(constants)),
      random_(job.seed),
      clock_(job.workers, job.staleness) {
  // On cores of their own, threads that poll delay no others.
  const auto cores = static_cast<int>(job_.host.cores);
  const int ranks =
      job_.one_host ? job_.workers + job_.ps + 1 : std::max(job_.workers_per_host, job_.ps_per_host);
  if (ranks <= cores) constants_.poll_slice = 0;
  coordinator_hosts_.push_back(std::make_unique<Host>(simulation_, job_.host, random_));
  const auto closures = static_cast<std::uint64_t>(job_.steps) * static_cast<std::uint64_t>(job_.workers);
  coordinator_ = std::make_unique<CoordinatorActor>(
      simulation_, *coordinator_hosts_.front(), job_, constants_, random_, closures, [this](int worker) {
        WorkerActor& receiver = *workers_[static_cast<std::size_t>(worker)];
        transfer(coordinator_->host(), receiver.host(), {kResultBytes, kResultBytes},
                 [&receiver] { receiver.receive_closure(); });
      });
  open_ = closures_ = last_counted_ = closures;
  for (int i = 0; i < job_.simulated_ps(); ++i) {
    ps_.push_back(std::make_unique<PsActor>(simulation_, host_of(i, job_.ps_per_host, ps_hosts_), job_,
                                            constants_, random_, i));
  }
  for (int i = 0; i < job_.workers; ++i) {
    workers_.push_back(std::make_unique<WorkerActor>(
        simulation_, host_of(i, job_.workers_per_host, worker_hosts_), job_, constants_, random_, i, ps_,
        clock_, times_, [this](int worker) { end_step(worker); }));
  }
  cold_ = job_.workers;
  warmed_up_.resize(workers_.size(), false);
}

/// Returns the host of a rank, and creates it for its first rank.
Host& JobSimulation::host_of(int index, int ranks_per_host, std::vector<std::unique_ptr<Host>>& hosts) {
  if (job_.one_host) return *coordinator_hosts_.front();
  const auto host = static_cast<std::size_t>(index / ranks_per_host);
  if (host == hosts.size()) hosts.push_back(std::make_unique<Host>(simulation_, job_.host, random_));
  return *hosts[host];
}

JobSimulation::Snapshot JobSimulation::snapshot() const {
  const double now = simulation_.now();
  PsActor& ps = *ps_.front();
  return {.time = now,
          .steps = static_cast<double>(times_.steps.size()),
          .processors = now * ps.host().cores.utilization(),
          .ps_busy = ps.thread().busy(),
          .ps_tasks = now * ps.thread().mean_tasks(),
          .coordinator = coordinator_->thread().busy()};
}

void JobSimulation::end_step(int worker) {
  const auto index = static_cast<std::size_t>(worker);
  if (!warmed_up_[index]) {
    warmed_up_[index] = true;
    if (--cold_ == 0) begin_to_count();
  }
  if (times_.steps.size() == last_counted_) last_ = snapshot();
  receive_result(worker);
}

/// Counts a multiple of the number of workers, and leaves out the last step of each. At the end, as much work
/// is then in flight as now. Without this, work that was done for steps in flight would make steps shorter.
void JobSimulation::begin_to_count() {
  warm_up_ = snapshot();
  const std::size_t ended = times_.steps.size();
  const std::size_t rounds = (closures_ - ended) / workers_.size();
  if (rounds > 1) last_counted_ = ended + (rounds - 1) * workers_.size();
}

void JobSimulation::receive_result(int worker) {
  transfer(workers_[static_cast<std::size_t>(worker)]->host(), coordinator_->host(),
           {kResultBytes, kResultBytes}, [this, worker] {
             if (--open_ == 0) simulation_.stop();
             coordinator_->receive_result(worker);
           });
}

Prediction JobSimulation::run() {
  coordinator_->start();
  simulation_.run_until(std::numeric_limits<double>::max());
  if (last_.time <= 0) last_ = snapshot();  // stopped before the last step
  // The first step of each worker is left out, unless there are no other steps.
  const Snapshot from = last_.time > warm_up_.time && last_.steps > warm_up_.steps ? warm_up_ : Snapshot();
  const double seconds = last_.time - from.time;
  if (!(seconds > 0)) {
    throw Error(Code::invalid_argument, "cannot simulate a job: its steps take 0 s, expected more");
  }
  Prediction prediction;
  prediction.seconds = simulation_.now();
  prediction.whole_rate = static_cast<double>(times_.steps.size()) / prediction.seconds;
  prediction.rate = (last_.steps - from.steps) / seconds;
  prediction.step_time = job_.workers / prediction.rate;
  prediction.step_median = quantile(times_.steps, 0.5);
  prediction.step_p99 = quantile(times_.steps, 0.99);
  prediction.push_median = quantile(times_.pushes, 0.5);
  prediction.push_p99 = quantile(times_.pushes, 0.99);
  prediction.processors = (last_.processors - from.processors) / seconds;
  prediction.ps_busy = (last_.ps_busy - from.ps_busy) / seconds;
  prediction.ps_waiting = (last_.ps_tasks - from.ps_tasks) / seconds;
  prediction.coordinator_busy = (last_.coordinator - from.coordinator) / seconds;
  prediction.events = simulation_.events();
  return prediction;
}

}  // namespace capstan::simulate
