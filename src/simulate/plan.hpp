// plan.hpp -- recommends the number of ps of a job.
#pragma once

#include <vector>

#include "simulate/bounds.hpp"
#include "simulate/job_model.hpp"

namespace capstan::simulate {

/// A job whose number of ps is to be found.
struct PlanRequest {
  JobModel job;           ///< its `ps` and `steps` are ignored
  double rows = 0;        ///< of the table
  double zipf = 0;        ///< exponent of the distribution of row numbers; 0: uniform
  double row_factor = 1;  ///< memory of a row, as a multiple of its values: 2 with one slot of the optimizer
  double ps_memory = 0;   ///< bytes that a ps may use for rows; 0: no limit
  int ps = 0;             ///< number of ps to predict; 0: recommend it
};

/// The job with a number of ps.
struct PlannedJob {
  int ps = 0;
  double ps_bytes = 0;  ///< of the rows of a ps
  Prediction prediction;
  std::vector<StepBound> bounds;
  StepBound largest;
};

struct Plan {
  PlannedJob chosen;
  std::vector<PlannedJob> others;  ///< with half as many ps, if they hold the table, and twice as many
};

/// Returns the share of draws by Zipf's law that are the most frequent of `rows` rows. 0 for an exponent of
/// 0.
double hottest_row_share(double rows, double exponent);

/// Recommends the smallest number of ps with which their threads and links are busy for at most 80 % of the
/// least step time, if there is one, and simulates the job. Throws Error(invalid_argument) for a request that
/// no job can have, and if the requested or more than 100,000 ps do not hold the table.
Plan plan_job(const PlanRequest& request, const Constants& constants);

}  // namespace capstan::simulate
