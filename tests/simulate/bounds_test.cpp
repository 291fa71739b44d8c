// bounds_test.cpp -- bounds computed by hand; no simulated step is faster.
#include "simulate/bounds.hpp"

#include <gtest/gtest.h>

#include "simulate/job_simulation.hpp"

namespace capstan::simulate {
namespace {

/// Rows and messages take no time, so that single constants can be tested.
Constants no_work() {
  Constants constants;
  for (const ConstantField& field : constant_table()) constants.*field.value = 0;
  constants.poll_time = 1e9;
  return constants;
}

double bound_of(const JobModel& job, const Constants& constants, std::string_view resource) {
  for (const StepBound& bound : step_bounds(job, constants)) {
    if (bound.resource == resource) return bound.seconds;
  }
  ADD_FAILURE() << resource;
  return 0;
}

TEST(StepBounds, AgreeWithProductsOfCountsAndTimes) {
  JobModel job{.workers = 30, .ps = 3, .batch = 600, .dim = 64, .compute = 0.01};
  job.host.bandwidth = 1e9;
  Constants constants = no_work();
  constants.closure = 1e-3;
  constants.apply_row = 1e-6;
  EXPECT_DOUBLE_EQ(bound_of(job, constants, "computation and work of the worker"), 0.01);
  EXPECT_DOUBLE_EQ(bound_of(job, constants, "coordinator"), 0.03);
  EXPECT_DOUBLE_EQ(bound_of(job, constants, "ps"), 30 * 200 * 1e-6);
  EXPECT_DOUBLE_EQ(bound_of(job, constants, "links of the ps"), 30 * 200 * (4 * 64 + 8) / 1e9);
  EXPECT_DOUBLE_EQ(bound_of(job, constants, "links of the workers"), 600 * (4 * 64 + 8) / 1e9);
  EXPECT_EQ(largest_bound(job, constants).resource, "coordinator");
}

TEST(StepBounds, SharedCoresCountAllRanksOfTheHost) {
  JobModel job{.workers = 8, .ps = 2, .one_host = true, .batch = 100, .compute = 0.01};
  job.host.cores = 2;
  Constants constants = no_work();
  constants.apply_row = 1e-6;
  EXPECT_DOUBLE_EQ(bound_of(job, constants, "cores of the host"), (8 * 0.01 + 8 * 100e-6) / 2);
  job.paced = true;
  EXPECT_DOUBLE_EQ(bound_of(job, constants, "cores of the host"), 8 * 100e-6 / 2);
}

TEST(StepBounds, NoSimulatedStepIsFaster) {
  int checked = 0;
  for (const int workers : {1, 7, 64}) {
    for (const int ps : {1, 3}) {
      for (const double compute : {0.0, 1e-3}) {
        for (const bool one_host : {false, true}) {
          JobModel job{.workers = workers, .ps = ps, .one_host = one_host, .compute = compute, .steps = 40};
          job.host.bandwidth = 1e9;
          const Prediction prediction = simulate_job(job, Constants());
          const double bound = largest_bound(job, Constants()).seconds;
          EXPECT_GE(prediction.step_time, 0.999 * bound)
              << workers << " workers, " << ps << " ps, " << compute << " s, one host: " << one_host;
          ++checked;
        }
      }
    }
  }
  EXPECT_EQ(checked, 24);
}

}  // namespace
}  // namespace capstan::simulate
