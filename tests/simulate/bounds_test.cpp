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

TEST(StepBounds, NoSimulatedStepOfPsThatShareAHostIsFaster) {
  int checked = 0;
  for (const double hottest_row : {0.0, 0.2}) {
    for (const bool rdma : {false, true}) {
      for (const bool one_host : {false, true}) {
        for (const int ps_per_host : {1, 8}) {
          for (const std::size_t cores : {1, 64}) {
            JobModel job{
                .workers = 24, .ps = 16, .one_host = one_host, .ps_per_host = ps_per_host, .rdma = rdma};
            job.batch = 1600;
            job.compute = 0;
            job.hottest_row = hottest_row;
            job.steps = 40;
            job.most_simulated_ps = 4;
            job.host.cores = cores;
            job.host.bandwidth = cores == 1 ? 12.5e9 : 1e8;
            const Prediction prediction = simulate_job(job, Constants());
            const StepBound bound = largest_bound(job, Constants());
            EXPECT_GE(prediction.step_time, 0.999 * bound.seconds)
                << bound.resource << ", hottest row: " << hottest_row << ", RDMA: " << rdma
                << ", one host: " << one_host << ", " << ps_per_host << " ps per host, " << cores << " cores";
            ++checked;
          }
        }
      }
    }
  }
  EXPECT_EQ(checked, 32);
}

TEST(StepBounds, APushHasTheMostFrequentRowOnce) {
  JobModel job{.workers = 10, .ps = 2, .batch = 1000, .dim = 1};
  job.hottest_row = 0.5;
  job.host.bandwidth = 1e6;
  Constants constants = no_work();
  constants.apply_row = 64e-6;  // 1 us for a row of one float
  EXPECT_DOUBLE_EQ(bound_of(job, constants, "ps"), 10 * (250 + 1) * 1e-6);
  // Lookups of 750 rows and a push of 251; the reply has 750 rows.
  EXPECT_DOUBLE_EQ(bound_of(job, constants, "links of the ps"), 10 * (750 * 4 + 251 * 8) / 1e6);
  job.ps_per_host = 2;  // 1,000 looked up rows, and 501 pushed ones
  EXPECT_DOUBLE_EQ(bound_of(job, constants, "links of the ps"), 10 * (1000 * 4 + 501 * 8) / 1e6);
  EXPECT_DOUBLE_EQ(bound_of(job, constants, "cores of the ps's hosts"), 10 * 501e-6);
  job.rows = 101;  // 100 of them are not the most frequent one
  EXPECT_DOUBLE_EQ(bound_of(job, constants, "ps"), 10 * (50 + 1) * 1e-6);
  job.hottest_row = 0;
  EXPECT_DOUBLE_EQ(bound_of(job, constants, "ps"), 10 * 50.5e-6);
}

TEST(StepBounds, OnlyThoseOfPsDependOnTheirNumber) {
  JobModel job{.workers = 10, .ps = 2};
  JobModel more = job;
  more.ps = 4;
  const auto few = step_bounds(job, Constants());
  const auto many = step_bounds(more, Constants());
  ASSERT_EQ(few.size(), many.size());
  int of_ps = 0;
  for (std::size_t i = 0; i < few.size(); ++i) {
    EXPECT_EQ(few[i].of_ps, many[i].seconds < few[i].seconds) << few[i].resource;
    of_ps += few[i].of_ps;
  }
  EXPECT_EQ(of_ps, 3);
}

}  // namespace
}  // namespace capstan::simulate
