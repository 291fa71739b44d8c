// bounds.hpp -- least time of a step, by each resource alone.
#pragma once

#include <string_view>
#include <vector>

#include "simulate/job_model.hpp"

namespace capstan::simulate {

/// Least time between two steps of a worker that a resource allows.
struct StepBound {
  std::string_view resource;
  double seconds;
  bool of_ps = false;  ///< more ps shorten it
};

/// Returns the bounds of the computation with the worker's own work, the coordinator, the most loaded ps, the
/// links of the ps and of the workers, and the cores that ranks share. A simulated step takes no less than
/// the largest one.
std::vector<StepBound> step_bounds(const JobModel& job, const Constants& constants);

/// Returns the largest bound.
StepBound largest_bound(const JobModel& job, const Constants& constants);

}  // namespace capstan::simulate
