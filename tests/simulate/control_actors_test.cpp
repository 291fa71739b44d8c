// control_actors_test.cpp -- heartbeats, joins and saves of a simulated job.
#include <gtest/gtest.h>

#include "capstan/error.hpp"
#include "simulate/heartbeat_actor.hpp"
#include "simulate/job_simulation.hpp"
#include "simulate/join_actor.hpp"
#include "simulate/save_actor.hpp"

namespace capstan::simulate {
namespace {

JobModel slow_job(int workers) {
  return {.workers = workers, .ps = 2, .batch = 10, .compute = 0.05, .steps = 200, .heartbeat_period = 1};
}

TEST(HeartbeatActor, DetectsASilentMemberWithinTheTimeout) {
  int detected = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    JobModel job = slow_job(4);
    job.seed = seed;
    JobSimulation run(job, Constants());
    HeartbeatActor heartbeats(run.simulation(), run.coordinator(), run.job(), run.constants(), run.random());
    run.simulation().after(3, [&] { heartbeats.kill(1); });
    (void)run.run();  // 10 s
    // The last heartbeat was sent up to a period before; the check is up to a period late.
    EXPECT_GE(heartbeats.detection_time(), 3) << seed;
    EXPECT_LE(heartbeats.detection_time(), 5.01) << seed;
    EXPECT_EQ(heartbeats.false_suspicions(), 0);
    ++detected;
  }
  EXPECT_EQ(detected, 20);
}

TEST(HeartbeatActor, ABusyCoordinatorSuspectsMembersThatAreAlive) {
  Constants constants;
  constants.message = 0.3;  // 12 s of work for 18 heartbeats and their answers
  JobModel job = slow_job(16);
  job.steps = 1000;
  JobSimulation run(job, constants);
  HeartbeatActor heartbeats(run.simulation(), run.coordinator(), run.job(), run.constants(), run.random());
  run.simulation().after(60, [&run] { run.simulation().stop(); });
  (void)run.run();
  EXPECT_GT(heartbeats.false_suspicions(), 0);
}

TEST(HeartbeatActor, NeedsAPeriod) {
  JobModel job = slow_job(4);
  job.heartbeat_period = 0;
  JobSimulation run(job, Constants());
  EXPECT_THROW(HeartbeatActor(run.simulation(), run.coordinator(), run.job(), run.constants(), run.random()),
               Error);
}

TEST(JoinActor, SendsTheTableOfMembersAndConnectsToEveryPs) {
  Constants constants;
  for (const ConstantField& field : constant_table()) constants.*field.value = 0;
  constants.poll_time = 1e9;
  constants.connection = 0.01;
  constants.member_bytes = 1000;
  JobModel job = slow_job(97);
  job.host.bandwidth = 1e6;
  job.host.latency = 0;
  job.batch = 0;
  job.compute = 100;  // the job is idle meanwhile
  job.steps = 1;
  JobSimulation run(job, constants);
  Host host(run.simulation(), job.host, run.random());
  JoinActor joins(run.simulation(), run.coordinator(), run.ps(), host, run.job(), run.constants());
  double joined = 0;
  run.simulation().after(50, [&] { joins.join([&] { joined = run.simulation().now(); }); });
  (void)run.run();
  // One connection of the coordinator, 100 members of 1,000 bytes, one connection of each ps at the same
  // time, and two of the worker.
  EXPECT_NEAR(joined - 50, 0.01 + 0.1 + 0.01 + 0.02, 1e-6);
}

TEST(SaveActor, SlowsPushesUntilItsEnd) {
  Constants constants;
  JobModel job{.workers = 4, .ps = 1, .batch = 4096, .compute = 0, .steps = 100};
  const double alone = simulate_job(job, constants).seconds;
  JobSimulation run(job, constants);
  SaveActor saves(run.simulation(), run.coordinator(), run.ps(), run.job(), run.constants());
  double saved = 0;
  saves.save(1e6, 2e7, [&] { saved = run.simulation().now(); });
  const double with_save = run.run().seconds;
  EXPECT_NEAR(saved, 0.05, 0.005);
  EXPECT_GT(with_save, alone * 1.01);
}

}  // namespace
}  // namespace capstan::simulate
