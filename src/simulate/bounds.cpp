// bounds.cpp -- demands of a step on each resource.
#include "simulate/bounds.hpp"

#include <algorithm>

#include "simulate/coordinator_actor.hpp"
#include "simulate/ps_actor.hpp"
#include "simulate/worker_actor.hpp"

namespace capstan::simulate {

std::vector<StepBound> step_bounds(const JobModel& job, const Constants& constants) {
  const double own = job.compute + worker_step_seconds(job, constants);
  const double coordinator = job.workers * closure_seconds(job, constants);
  const double rows = job.rows_on(0);
  const double of_ps = ps_read_seconds(job, constants, rows) + ps_push_seconds(job, constants, rows);
  const double busiest_ps = job.workers * of_ps;
  std::vector<StepBound> bounds{
      {"computation and work of the worker", own}, {"coordinator", coordinator}, {"ps", busiest_ps}};
  if (job.one_host) {
    const double computation = job.paced ? 0 : job.compute;
    double all_ps = 0;
    for (int i = 0; i < job.ps; ++i)
      all_ps +=
          ps_read_seconds(job, constants, job.rows_on(i)) + ps_push_seconds(job, constants, job.rows_on(i));
    const double demand =
        job.workers * (computation + worker_step_seconds(job, constants) + all_ps) + coordinator;
    bounds.push_back({"cores of the host", demand / static_cast<double>(job.host.cores)});
    return bounds;
  }
  // Row numbers arrive at the ps with the requests, and gradients with the pushes; rows leave it.
  const double into_ps = rows * (4 + 4 * job.dim + 4);
  const double from_ps = rows * 4 * job.dim;
  const double ps_link = std::max(into_ps, from_ps) * job.workers * std::min(job.ps, job.ps_per_host);
  const double worker_link = job.batch * (4 * job.dim + 8) * std::min(job.workers, job.workers_per_host);
  bounds.push_back({"links of the ps", ps_link / job.host.bandwidth});
  bounds.push_back({"links of the workers", worker_link / job.host.bandwidth});
  // The cores of a host limit its ranks only if there are fewer of them.
  const double worker_cores = std::min(job.workers, job.workers_per_host) * own;
  bounds.push_back({"cores of the workers' hosts", worker_cores / static_cast<double>(job.host.cores)});
  const double ps_cores = std::min(job.ps, job.ps_per_host) * busiest_ps;
  bounds.push_back({"cores of the ps's hosts", ps_cores / static_cast<double>(job.host.cores)});
  return bounds;
}

StepBound largest_bound(const JobModel& job, const Constants& constants) {
  const std::vector<StepBound> bounds = step_bounds(job, constants);
  return *std::max_element(bounds.begin(), bounds.end(),
                           [](const StepBound& a, const StepBound& b) { return a.seconds < b.seconds; });
}

}  // namespace capstan::simulate
