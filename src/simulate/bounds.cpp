// bounds.cpp -- demands of a step on each resource.
#include "simulate/bounds.hpp"

#include <algorithm>

#include "simulate/coordinator_actor.hpp"
#include "simulate/ps_actor.hpp"
#include "simulate/worker_actor.hpp"

namespace capstan::simulate {

namespace {

/// Demands of a step of one worker on the first `count` ps.
struct PsDemands {
  double seconds = 0;
  double bytes_in = 0;
  double bytes_out = 0;
};

double ps_seconds(const JobModel& job, const Constants& constants, int index) {
  return ps_read_seconds(job, constants, job.rows_on(index)) +
         ps_push_seconds(job, constants, job.pushed_on(index));
}

/// Row numbers arrive at a ps with the requests, and gradients with the pushes; rows leave it.
PsDemands ps_demands(const JobModel& job, const Constants& constants, int count) {
  PsDemands sum;
  for (int i = 0; i < count; ++i) {
    sum.seconds += ps_seconds(job, constants, i);
    sum.bytes_in += job.rows_on(i) * 4 + job.pushed_on(i) * (4 * job.dim + 4);
    sum.bytes_out += job.rows_on(i) * 4 * job.dim;
  }
  return sum;
}

}  // namespace

std::vector<StepBound> step_bounds(const JobModel& job, const Constants& constants) {
  const double own = job.compute + worker_step_seconds(job, constants);
  const double coordinator = job.workers * closure_seconds(job, constants);
  const double busiest_ps = job.workers * ps_seconds(job, constants, 0);
  std::vector<StepBound> bounds{
      {"computation and work of the worker", own}, {"coordinator", coordinator}, {"ps", busiest_ps, true}};
  if (job.one_host) {
    const double computation = job.paced ? 0 : job.compute;
    const double all_ps = ps_demands(job, constants, job.ps).seconds;
    const double demand =
        job.workers * (computation + worker_step_seconds(job, constants) + all_ps) + coordinator;
    bounds.push_back({"cores of the host", demand / static_cast<double>(job.host.cores)});
    return bounds;
  }
  const PsDemands of_host = ps_demands(job, constants, std::min(job.ps, job.ps_per_host));
  const double ps_link = job.workers * std::max(of_host.bytes_in, of_host.bytes_out);
  const double from_worker = job.batch * 4 + job.pushed() * (4 * job.dim + 4);
  const double worker_link =
      std::max(from_worker, job.batch * 4 * job.dim) * std::min(job.workers, job.workers_per_host);
  bounds.push_back({"links of the ps", ps_link / job.host.bandwidth, true});
  bounds.push_back({"links of the workers", worker_link / job.host.bandwidth});
  // The cores of a host limit its ranks only if there are fewer of them.
  const double worker_cores = std::min(job.workers, job.workers_per_host) * own;
  bounds.push_back({"cores of the workers' hosts", worker_cores / static_cast<double>(job.host.cores)});
  const double ps_cores = job.workers * of_host.seconds;
  bounds.push_back({"cores of the ps's hosts", ps_cores / static_cast<double>(job.host.cores), true});
  return bounds;
}

StepBound largest_bound(const JobModel& job, const Constants& constants) {
  const std::vector<StepBound> bounds = step_bounds(job, constants);
  return *std::max_element(bounds.begin(), bounds.end(),
                           [](const StepBound& a, const StepBound& b) { return a.seconds < b.seconds; });
}

}  // namespace capstan::simulate
