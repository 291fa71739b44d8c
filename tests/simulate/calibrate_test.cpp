// calibrate_test.cpp -- finds the constants of simulated runs again.
#include "simulate/calibrate.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "capstan/error.hpp"
#include "simulate/job_simulation.hpp"

namespace capstan::simulate {
namespace {

/// "Measures" a job by a simulation with another seed.
PacedRun run_of(int workers, double compute, const Constants& constants) {
  PacedRun run{.job = paced_job(workers, 1, 2, 64, compute)};
  run.job.steps = 50;
  JobModel other = run.job;
  other.seed = 7;
  const Prediction measured = simulate_job(other, constants);
  run.rate = measured.whole_rate;
  run.push_median = measured.push_median;
  run.push_p99 = measured.push_p99;
  run.step_p99 = measured.step_p99;
  return run;
}

TEST(Calibrate, PredictsLargerJobsFromSmallOnes) {
  Constants truth;
  truth.closure = truth.step = truth.apply = 35e-6;
  truth.wake_up = 30e-6;
  truth.wake_up_spread = 90e-6;
  std::vector<PacedRun> runs;
  for (const int workers : {2, 8, 16}) {
    for (const double compute : {0.0, 2e-3}) runs.push_back(run_of(workers, compute, truth));
  }
  const Constants found = calibrate(runs, Constants());
  const double sum = truth.closure + truth.step + truth.apply;
  EXPECT_NEAR(found.closure + found.step + found.apply, sum, 0.1 * sum);
  const PacedRun larger = run_of(64, 2e-3, truth);
  const Prediction predicted = simulate_job(larger.job, found);
  EXPECT_NEAR(predicted.whole_rate, larger.rate, 0.05 * larger.rate);
  EXPECT_NEAR(predicted.step_p99, larger.step_p99, 0.15 * larger.step_p99);
}

TEST(Calibrate, NeedsRuns) { EXPECT_THROW(calibrate({}, Constants()), Error); }

}  // namespace
}  // namespace capstan::simulate
