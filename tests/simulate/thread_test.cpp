// thread_test.cpp -- order of tasks, shared cores, wake-ups.
#include "simulate/thread.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace capstan::simulate {
namespace {

struct Threads {
  Constants constants;
  Simulation simulation;
  RandomSource random{1};
  Queue cores;
  std::vector<double> ends;

  explicit Threads(std::size_t count) : cores(simulation, count) {
    constants.poll_time = 1;
    constants.poll_slice = 0;
    constants.wake_up = 10;
    constants.wake_up_spread = 0;
  }
  Simulation::Action note() {
    return [this] { ends.push_back(simulation.now()); };
  }
};

TEST(SimulatedThread, ExecutesOneTaskAtATime) {
  Threads t(2);
  Thread thread(t.simulation, t.cores, t.constants, t.random);
  thread.run(2, t.note());
  thread.run(3, t.note());
  t.simulation.run_until(100);
  EXPECT_EQ(t.ends, (std::vector<double>{2, 5}));
  EXPECT_DOUBLE_EQ(thread.busy(), 5);
  EXPECT_DOUBLE_EQ(thread.mean_tasks(), (2 * 2 + 3.0) / 5);
}

TEST(SimulatedThread, WaitsForACoreOfItsHost) {
  Threads t(1);
  Thread a(t.simulation, t.cores, t.constants, t.random);
  Thread b(t.simulation, t.cores, t.constants, t.random);
  a.run(2, t.note());
  b.run(3, t.note());
  t.simulation.run_until(100);
  EXPECT_EQ(t.ends, (std::vector<double>{2, 5}));
}

TEST(SimulatedThread, WakesUpAfterItsPollTime) {
  Threads t(1);
  Thread thread(t.simulation, t.cores, t.constants, t.random);
  t.simulation.after(1, [&] { thread.run(1, t.note()); });  // polls still
  t.simulation.after(4, [&] { thread.run(1, t.note()); });  // sleeps since 3
  t.simulation.after(20, [&] {
    thread.wake();
    thread.run(1, t.note());
  });
  t.simulation.run_until(100);
  EXPECT_EQ(t.ends, (std::vector<double>{2, 15, 21}));
}

TEST(SimulatedThread, PollsTakeTheCoreInSlices) {
  Threads t(1);
  t.constants.poll_time = 10;
  t.constants.poll_slice = 3;
  Thread a(t.simulation, t.cores, t.constants, t.random);
  Thread b(t.simulation, t.cores, t.constants, t.random);
  a.run(2, t.note());                                  // then polls from 2 to 5, 5 to 8, ...
  t.simulation.after(4, [&] { b.run(1, t.note()); });  // gets the core at 5
  t.simulation.after(7, [&] { a.run(1, t.note()); });  // polls from 6 to 9, and then has the task
  t.simulation.run_until(12);
  ASSERT_GE(t.ends.size(), 2u);
  EXPECT_EQ(t.ends[0], 2);
  EXPECT_EQ(t.ends[1], 6);
  t.simulation.run_until(100);
  EXPECT_EQ(t.ends.size(), 3u);
  EXPECT_DOUBLE_EQ(a.busy(), 3);
  EXPECT_GT(t.cores.utilization(), 0.1);  // polls, too
}

TEST(SimulatedThread, ABlockedThreadDoesNotPoll) {
  Threads t(1);
  t.constants.poll_slice = 0.5;
  Thread thread(t.simulation, t.cores, t.constants, t.random);
  thread.run(2, [&] { thread.block(); });
  t.simulation.run_until(100);
  EXPECT_DOUBLE_EQ(t.simulation.now(), 2);
}

/// A thread whose tasks arrive by a Poisson process is an M/M/1 queue.
TEST(SimulatedThread, AgreesWithMm1) {
  Threads t(1);
  t.constants.poll_time = 1e9;
  Thread thread(t.simulation, t.cores, t.constants, t.random);
  const std::function<void()> arrive = [&] {
    if (t.simulation.now() > 100'000) return;
    thread.run(t.random.exponential(0.7), [] {});
    t.simulation.after(t.random.exponential(1), arrive);
  };
  t.simulation.after(0, arrive);
  t.simulation.run_until(1e6);
  EXPECT_NEAR(thread.mean_tasks(), 0.7 / 0.3, 0.05 * 0.7 / 0.3);
}

}  // namespace
}  // namespace capstan::simulate
