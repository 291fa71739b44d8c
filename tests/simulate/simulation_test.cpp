// simulation_test.cpp -- order of events, end of a run, rejected delays.
#include "simulate/simulation.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "capstan/error.hpp"

namespace capstan::simulate {
namespace {

TEST(Simulation, RunsEventsByTimeAndThenInTheOrderOfScheduling) {
  Simulation simulation;
  std::string order;
  simulation.after(2, [&] { order += 'd'; });
  simulation.after(1, [&] {
    order += 'a';
    simulation.after(0, [&] { order += 'c'; });
  });
  simulation.after(1, [&] { order += 'b'; });
  simulation.run_until(10);
  EXPECT_EQ(order, "abcd");
  EXPECT_EQ(simulation.now(), 2);
  EXPECT_EQ(simulation.events(), 4u);
}

TEST(Simulation, ContinuesAfterTheEndOfARun) {
  Simulation simulation;
  int ran = 0;
  simulation.after(1, [&] { ++ran; });
  simulation.after(3, [&] { ++ran; });
  simulation.run_until(2);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(simulation.now(), 2);
  simulation.run_until(3);
  EXPECT_EQ(ran, 2);
}

TEST(Simulation, StopsAfterTheCurrentAction) {
  Simulation simulation;
  int ran = 0;
  for (int i = 1; i <= 3; ++i) {
    simulation.after(i, [&] {
      if (++ran == 2) simulation.stop();
    });
  }
  simulation.run_until(10);
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(simulation.now(), 2);
  simulation.run_until(10);
  EXPECT_EQ(ran, 3);
}

TEST(Simulation, RejectsDelaysThatAreNegativeOrNotFinite) {
  Simulation simulation;
  for (const double delay :
       {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    try {
      simulation.after(delay, [] {});
      FAIL() << delay;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
    }
  }
}

}  // namespace
}  // namespace capstan::simulate
