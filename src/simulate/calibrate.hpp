// calibrate.hpp -- fits constants to measured paced steps.
#pragma once

#include <cstddef>
#include <span>

#include "simulate/constants.hpp"
#include "simulate/job_model.hpp"

namespace capstan::simulate {

/// Paced steps of `perf_scale --only paced` on one host. Times in seconds.
struct PacedRun {
  JobModel job;
  double rate = 0;  ///< steps/s of the whole run
  double push_median = 0;
  double push_p99 = 0;
  double step_p99 = 0;
};

/// Returns the job of paced steps on a host: workers that hold one closure each, and mapped memory.
JobModel paced_job(int workers, int ps, std::size_t cores, double batch, double compute);

/// Returns `constants` with other values of the constants that no benchmark measures alone: `closure`,
/// `step`, `apply`, and the times of a wake-up and of a timer. They minimize the weighted squared logarithms
/// of predicted / measured values. Of runs without computation, only the rate counts. Throws
/// Error(invalid_argument) without runs.
Constants calibrate(std::span<const PacedRun> runs, const Constants& constants);

}  // namespace capstan::simulate
