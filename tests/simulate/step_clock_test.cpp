// step_clock_test.cpp -- which workers may begin a step.
#include "simulate/step_clock.hpp"

#include <gtest/gtest.h>

namespace capstan::simulate {
namespace {

int begun = 0;
const Simulation::Action kCountBegun = [] { ++begun; };

TEST(StepClock, SynchronousStepsWaitForTheSlowestWorker) {
  begun = 0;
  StepClock clock(2, 0);
  clock.begin(0, kCountBegun);
  clock.begin(1, kCountBegun);
  EXPECT_EQ(begun, 2);
  clock.end(0);
  clock.begin(0, kCountBegun);
  EXPECT_EQ(begun, 2);
  clock.end(1);
  EXPECT_EQ(begun, 3);
  EXPECT_EQ(clock.slowest(), 1);
}

TEST(StepClock, AStaleWorkerMayBeAheadByTheBound) {
  begun = 0;
  StepClock clock(2, 2);
  for (int step = 0; step < 4; ++step) {
    clock.begin(0, kCountBegun);
    if (begun == step + 1) clock.end(0);
  }
  EXPECT_EQ(begun, 3);  // steps 0, 1 and 2, while the other worker is in step 0
  clock.end(1);
  EXPECT_EQ(begun, 4);
}

TEST(StepClock, AsynchronousWorkersNeverWait) {
  begun = 0;
  StepClock clock(2, -1);
  for (int step = 0; step < 9; ++step) {
    clock.begin(0, kCountBegun);
    clock.end(0);
  }
  EXPECT_EQ(begun, 9);
}

}  // namespace
}  // namespace capstan::simulate
