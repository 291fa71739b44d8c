// shared_link_test.cpp -- times of flows that share a link, computed by hand.
#include "simulate/shared_link.hpp"

#include <gtest/gtest.h>

#include "capstan/error.hpp"

namespace capstan::simulate {
namespace {

TEST(SharedLink, AFlowTakesItsBytesByTheBandwidthAndTheLatency) {
  Simulation simulation;
  SharedLink link(simulation, 100, 0.5);
  double end = 0;
  link.send(200, [&] { end = simulation.now(); });
  simulation.run_until(10);
  EXPECT_DOUBLE_EQ(end, 2.5);
  EXPECT_EQ(link.flows(), 0u);
}

TEST(SharedLink, TwoFlowsShareTheBandwidth) {
  Simulation simulation;
  SharedLink link(simulation, 100, 0);
  double long_end = 0;
  double short_end = 0;
  link.send(300, [&] { long_end = simulation.now(); });
  // At 1 s, 200 bytes of the long flow are left. Both have 50 bytes/s until 3 s, then the long one has 100.
  simulation.after(1, [&] { link.send(100, [&] { short_end = simulation.now(); }); });
  simulation.run_until(10);
  EXPECT_DOUBLE_EQ(short_end, 3);
  EXPECT_DOUBLE_EQ(long_end, 4);
}

TEST(SharedLink, ManyEqualFlowsEndTogether) {
  Simulation simulation;
  SharedLink link(simulation, 1e9, 0);
  int arrived = 0;
  for (int i = 0; i < 1000; ++i) {
    link.send(1e6, [&] {
      ++arrived;
      EXPECT_NEAR(simulation.now(), 1, 1e-9);
    });
  }
  simulation.run_until(10);
  EXPECT_EQ(arrived, 1000);
}

TEST(SharedLink, RejectsABandwidthOfZeroAndANegativeLatency) {
  Simulation simulation;
  EXPECT_THROW(SharedLink(simulation, 0, 0), Error);
  EXPECT_THROW(SharedLink(simulation, 1, -1), Error);
}

}  // namespace
}  // namespace capstan::simulate
