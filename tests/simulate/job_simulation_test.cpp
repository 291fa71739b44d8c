// job_simulation_test.cpp -- steps of jobs whose times can be computed by hand, or by formulas of queues.
// Tests: src/simulate/coordinator_actor.hpp
// Tests: src/simulate/host.hpp
// Tests: src/simulate/job_model.hpp
// Tests: src/simulate/network.hpp
// Tests: src/simulate/ps_actor.cpp
// Tests: src/simulate/worker_actor.cpp
#include "simulate/job_simulation.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "capstan/error.hpp"
#include "simulate/bounds.hpp"

namespace capstan::simulate {
namespace {

Constants only_apply(double apply) {
  Constants constants;
  for (const ConstantField& field : constant_table()) constants.*field.value = 0;
  constants.poll_time = 1e9;
  constants.apply = apply;
  return constants;
}

TEST(JobSimulation, OneWorkerTakesTheSumOfAllParts) {
  const JobModel job{.one_host = true, .batch = 100, .compute = 0.01, .in_flight = 1, .steps = 10};
  Constants constants = only_apply(1e-3);
  constants.closure = 2e-3;
  constants.step = 4e-3;
  constants.lookup_row = 1e-5;
  constants.push_row = 2e-5;
  constants.apply_row = 3e-5;
  const Prediction prediction = simulate_job(job, constants);
  const double step = 0.01 + 4e-3 + 100 * 6e-5 + 1e-3;
  EXPECT_NEAR(prediction.step_median, step, 1e-9);
  EXPECT_NEAR(prediction.push_median, 100 * 5e-5 + 1e-3 + 2e-3, 1e-9);
  EXPECT_NEAR(prediction.seconds, 10 * (step + 2e-3), 1e-9);
}

TEST(JobSimulation, ASecondClosureHidesTheCoordinator) {
  JobModel job{.one_host = true, .compute = 0.01, .in_flight = 2, .steps = 100};
  job.host.cores = 2;
  Constants constants = only_apply(0);
  constants.closure = 5e-3;
  EXPECT_NEAR(simulate_job(job, constants).step_time, 0.01, 0.0002);
}

TEST(JobSimulation, ASaturatedPsDeterminesTheRate) {
  JobModel job{.workers = 20, .one_host = true, .compute = 1e-3, .steps = 100};
  job.host.cores = 64;
  const Prediction prediction = simulate_job(job, only_apply(1e-3));
  EXPECT_NEAR(prediction.rate, 1000, 10);
  EXPECT_NEAR(prediction.ps_busy, 1, 0.01);
  EXPECT_NEAR(prediction.ps_waiting, 19, 0.5);  // the other worker computes
}

/// Machine repairmen: N workers that compute for exponential times are M/M/1//N; here the computation is
/// deterministic, so only the bounds of operational analysis hold, which need no distribution.
TEST(JobSimulation, ResponseTimesObeyTheLawOfClosedSystems) {
  int checked = 0;
  for (const int workers : {1, 2, 5, 10, 40}) {
    JobModel job{
        .workers = workers, .one_host = true, .compute = 9e-3, .paced = true, .in_flight = 1, .steps = 200};
    job.host.cores = 64;
    const Prediction p = simulate_job(job, only_apply(1e-3));
    EXPECT_LE(p.rate, std::min(workers / 0.01, 1000.0) * 1.001) << workers;
    EXPECT_GE(p.rate, 0.98 * workers / (0.01 + (workers - 1) * 1e-3)) << workers;
    EXPECT_NEAR(p.ps_busy, p.rate * 1e-3, 1e-6) << workers;                    // utilization law
    EXPECT_NEAR(p.ps_waiting, p.rate * (p.step_time - 9e-3), 0.02 * workers);  // Little's law
    ++checked;
  }
  EXPECT_EQ(checked, 5);
}

TEST(PsActor, ATurnPollsAllRingsOnceForThePushesThatHaveArrived) {
  const JobModel job{.workers = 1000, .rdma = true};
  Constants constants = only_apply(1e-3);
  constants.poll_ring = 1e-6;  // 1 ms for all rings
  Simulation simulation;
  RandomSource random(1);
  Host host(simulation, job.host, random);
  PsActor ps(simulation, host, job, constants, random, 0);
  std::vector<double> applied;
  const auto push = [&] { ps.push([&] { applied.push_back(simulation.now()); }); };
  for (int i = 0; i < 3; ++i) push();  // the first one alone, then two
  simulation.after(10e-3, push);
  simulation.run_until(1);
  const std::vector<double> expected{2e-3, 4e-3, 5e-3, 12e-3};
  ASSERT_EQ(applied.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(applied[i], expected[i], 1e-9) << i;
}

TEST(JobSimulation, LinksCarryEachRowTwice) {
  JobModel job{.workers = 4, .ps = 1, .batch = 1000, .dim = 64, .compute = 0, .steps = 50};
  job.host.bandwidth = 1e8;
  job.host.latency = 0;
  const Prediction prediction = simulate_job(job, only_apply(0));
  // Gradients of all workers go into the ps, and rows out of it, at the same time.
  const double least = 4 * 1000 * (4 * 64 + 8) / 1e8;
  EXPECT_GT(prediction.step_time, least);
  EXPECT_LT(prediction.step_time, 2.1 * least);
}

TEST(JobSimulation, SimulatedPsStandForAll) {
  JobModel job{.workers = 16, .ps = 16, .batch = 1600, .compute = 1e-3, .steps = 40};
  job.most_simulated_ps = 16;
  const double all = simulate_job(job, Constants()).step_time;
  job.most_simulated_ps = 4;
  EXPECT_NEAR(simulate_job(job, Constants()).step_time, all, 0.1 * all);
}

TEST(JobSimulation, SimulatedPsStandForAllIfOneRowIsFrequent) {
  JobModel job{.workers = 1, .ps = 16, .batch = 1600, .compute = 0, .steps = 40};
  job.hottest_row = 0.5;
  job.host.bandwidth = 1e8;
  job.most_simulated_ps = 16;
  const double all = simulate_job(job, Constants()).step_time;
  job.most_simulated_ps = 4;
  EXPECT_NEAR(simulate_job(job, Constants()).step_time, all, 0.05 * all);
}

TEST(JobSimulation, SimulatesAllPsOfAHost) {
  JobModel job{.ps = 16, .ps_per_host = 8, .most_simulated_ps = 4};
  EXPECT_EQ(job.simulated_ps(), 8);
  job.ps_per_host = 2;
  EXPECT_EQ(job.simulated_ps(), 4);
  EXPECT_EQ(job.ps_like(0), 1);
  EXPECT_EQ(job.ps_like(3), 5);
  job.one_host = true;
  EXPECT_EQ(job.simulated_ps(), 16);
  job.ps = 100'000;
  EXPECT_EQ(job.simulated_ps(), JobModel::kMostPsOfAHost);
}

TEST(JobSimulation, TheRateLeavesOutTheFirstAndTheLastSteps) {
  JobModel job{.workers = 100, .batch = 1, .compute = 1, .in_flight = 2, .steps = 3};
  Constants constants = only_apply(0);
  constants.closure = 5e-3;
  // The coordinator sends the first closures to all workers within 0.5 s, and then waits for them.
  const Prediction prediction = simulate_job(job, constants);
  EXPECT_NEAR(prediction.step_time, 1, 0.01);
  EXPECT_NEAR(prediction.whole_rate, 300 / prediction.seconds, 1e-9);
  EXPECT_GT(prediction.seconds, 3.4);
}

TEST(JobSimulation, PollSlicesOfLessThan100NsAreRejected) {
  JobModel job{.one_host = true};
  Constants constants;
  for (const double slice : {1e-12, 99e-9}) {
    constants.poll_slice = slice;
    EXPECT_THROW(simulate_job(job, constants), Error) << slice;
  }
  for (const double slice : {0.0, 100e-9}) {
    constants.poll_slice = slice;
    EXPECT_GT(simulate_job(job, constants).rate, 0) << slice;
  }
}

TEST(JobSimulation, ClosuresTakeMessagesBetweenHostsOnly) {
  Constants constants = only_apply(0);
  constants.message = 1e-3;
  constants.closure = 2e-3;
  JobModel job;
  EXPECT_DOUBLE_EQ(closure_seconds(job, constants), 4e-3);
  job.one_host = true;
  EXPECT_DOUBLE_EQ(closure_seconds(job, constants), 2e-3);
}

TEST(JobSimulation, SynchronousStepsAreNotFasterThanAsynchronousOnes) {
  JobModel job{.workers = 16, .ps = 2, .one_host = true, .compute = 1e-3, .paced = true, .steps = 200};
  Constants constants;
  constants.wake_up_spread = 2e-4;
  job.host.cores = 2;
  const double free = simulate_job(job, constants).rate;
  job.staleness = 2;
  const double stale = simulate_job(job, constants).rate;
  job.staleness = 0;
  const double synchronous = simulate_job(job, constants).rate;
  EXPECT_LE(synchronous, stale * 1.02);
  EXPECT_LE(stale, free * 1.02);
  EXPECT_LT(synchronous, free);
}

TEST(JobSimulation, ASeedRepeatsTheRun) {
  JobModel job{.workers = 8, .one_host = true, .paced = true, .steps = 50};
  Constants constants;
  constants.wake_up_spread = 1e-4;
  const Prediction a = simulate_job(job, constants);
  const Prediction b = simulate_job(job, constants);
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(a.events, b.events);
  job.seed = 2;
  EXPECT_NE(simulate_job(job, constants).seconds, a.seconds);
}

TEST(JobSimulation, BadJobsAreRejected) {
  const JobModel valid;
  for (const auto& change : std::vector<std::function<void(JobModel&)>>{
           [](JobModel& job) { job.workers = 0; }, [](JobModel& job) { job.ps = 0; },
           [](JobModel& job) { job.compute = -1; }, [](JobModel& job) { job.hottest_row = 2; },
           [](JobModel& job) { job.in_flight = 0; }}) {
    JobModel job = valid;
    change(job);
    EXPECT_THROW(simulate_job(job, Constants()), Error);
  }
}

TEST(JobSimulation, StepsWithoutTimeAreRejected) {
  JobModel job{.one_host = true, .compute = 0};
  EXPECT_THROW(simulate_job(job, only_apply(0)), Error);
}

TEST(Quantile, IsTheNearestRank) {
  EXPECT_EQ(quantile({3, 1, 2, 4}, 0.5), 2);
  EXPECT_EQ(quantile({3, 1, 2, 4}, 0.99), 4);
  EXPECT_EQ(quantile({}, 0.5), 0);
}

}  // namespace
}  // namespace capstan::simulate
