// core_distance_test.cpp -- the time of a cache line between cores is measured if there are two.
#include "perf/bench/core_distance.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

namespace capstan::perf {
namespace {

TEST(CoreDistanceTest, IsMeasuredBetweenTwoCpus) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  if (CPU_COUNT(&before) < 2) GTEST_SKIP() << "needs two CPUs";
  const auto ns = cache_line_round_trip_ns();
  ASSERT_TRUE(ns.has_value());
  EXPECT_GT(*ns, 1);
  EXPECT_LT(*ns, 1e9);
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after)) << "the calling thread was bound";
}

TEST(CoreDistanceTest, IsUnknownWithOneCpu) {
  std::thread([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_FALSE(cache_line_round_trip_ns().has_value());
  }).join();
}

}  // namespace
}  // namespace capstan::perf
