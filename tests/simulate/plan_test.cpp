// plan_test.cpp -- recommended numbers of ps.
#include "simulate/plan.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string_view>

#include "capstan/error.hpp"

namespace capstan::simulate {
namespace {

PlanRequest request_of(int workers) {
  PlanRequest request;
  request.job = {.workers = workers, .batch = 4096, .dim = 64, .compute = 10e-3};
  request.rows = 1e6;
  return request;
}

TEST(Plan, AFewWorkersNeedOnePs) {
  const Plan plan = plan_job(request_of(2), Constants());
  EXPECT_EQ(plan.chosen.ps, 1);
  EXPECT_EQ(plan.chosen.largest.resource, "computation and work of the worker");
  EXPECT_GT(plan.chosen.prediction.step_time, 10e-3);
  ASSERT_EQ(plan.others.size(), 1u);
  EXPECT_EQ(plan.others.front().ps, 2);
}

TEST(Plan, MoreWorkersNeedMorePs) {
  const int few = plan_job(request_of(32), Constants()).chosen.ps;
  const int many = plan_job(request_of(128), Constants()).chosen.ps;
  EXPECT_GT(few, 1);
  EXPECT_GE(many, 3 * few);
}

TEST(Plan, TheChosenNumberIsNotMuchSlowerThanTwiceAsMany) {
  const Plan plan = plan_job(request_of(64), Constants());
  ASSERT_EQ(plan.others.size(), 2u);
  EXPECT_LT(plan.chosen.prediction.step_time, 1.25 * plan.others[1].prediction.step_time);
  EXPECT_GT(plan.others[0].prediction.step_time, 1.1 * plan.chosen.prediction.step_time);
}

/// Few steps of so many workers are simulated, so that the work in flight at the first counted step matters.
TEST(Plan, NoStepOfManyWorkersIsFasterThanItsBounds) {
  PlanRequest request = request_of(4'000);
  request.rows = 1e9;
  request.ps = 220;
  request.job.host.cores = 0;  // one for each rank
  for (const int workers_per_host : {1, 8}) {
    request.job.workers_per_host = workers_per_host;
    const Plan plan = plan_job(request, Constants());
    EXPECT_EQ(plan.chosen.largest.resource, "ps");
    EXPECT_GE(plan.chosen.prediction.step_time, 0.99 * plan.chosen.largest.seconds) << workers_per_host;
    ASSERT_EQ(plan.others.size(), 2u);
    for (const PlannedJob& other : plan.others) {
      EXPECT_GE(other.prediction.step_time, 0.99 * other.largest.seconds)
          << other.ps << " ps, " << workers_per_host << " workers on a host";
    }
  }
}

TEST(Plan, ASlowLinkIsNamed) {
  PlanRequest request = request_of(16);
  request.ps = 1;
  request.job.host.bandwidth = 1e9 / 8;
  EXPECT_EQ(plan_job(request, Constants()).chosen.largest.resource, "links of the ps");
}

TEST(Plan, AShortComputationIsBoundByTheCoordinator) {
  PlanRequest request = request_of(2'000);
  request.job.rdma = true;
  request.job.compute = 1e-3;
  request.job.batch = 16;
  EXPECT_EQ(plan_job(request, Constants()).chosen.largest.resource, "coordinator");
}

TEST(Plan, MemoryOfAPsSetsTheLeastNumber) {
  PlanRequest request = request_of(2);
  request.rows = 1e9;
  request.row_factor = 2;
  request.ps_memory = 100e9;
  const Plan plan = plan_job(request, Constants());
  EXPECT_GE(plan.chosen.ps, 6);  // 512 GB
  EXPECT_LE(plan.chosen.ps_bytes, 100e9);
}

TEST(Plan, TheLeastNumberOfPsIsACandidate) {
  PlanRequest request = request_of(2);
  request.rows = 1e9;
  request.ps_memory = 256e9 / 37;
  const Plan plan = plan_job(request, Constants());
  EXPECT_EQ(plan.chosen.ps, 37);
  ASSERT_EQ(plan.others.size(), 1u);  // half as many do not hold the table
  EXPECT_EQ(plan.others.front().ps, 74);
}

TEST(Plan, TooFewPsForTheTableAreRejected) {
  PlanRequest request = request_of(2);
  request.rows = 1e9;
  request.ps_memory = 100e9;
  request.ps = 3;
  EXPECT_EQ(plan_job(request, Constants()).chosen.ps, 3);
  request.ps = 2;
  EXPECT_THROW(plan_job(request, Constants()), Error);
  request.ps = 0;
  request.ps_memory = 256e9 / 100'001;
  try {
    plan_job(request, Constants());
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_NE(std::string_view(error.what()).find("--ps-memory"), std::string_view::npos) << error.what();
  }
}

TEST(HottestRowShare, IsThatOfTheFirstRow) {
  EXPECT_EQ(hottest_row_share(1e6, 0), 0);
  EXPECT_NEAR(hottest_row_share(4, 1), 1 / (1 + 1 / 2.0 + 1 / 3.0 + 1 / 4.0), 1e-12);
  // The harmonic number of a million is 14.392726.
  EXPECT_NEAR(hottest_row_share(1e6, 1), 1 / 14.392726, 1e-5);
}

TEST(Plan, BadRequestsAreRejected) {
  PlanRequest request = request_of(2);
  request.rows = 0;
  EXPECT_THROW(plan_job(request, Constants()), Error);
  request = request_of(0);
  EXPECT_THROW(plan_job(request, Constants()), Error);
  request = request_of(2);
  request.zipf = -1;
  EXPECT_THROW(plan_job(request, Constants()), Error);
}

}  // namespace
}  // namespace capstan::simulate
