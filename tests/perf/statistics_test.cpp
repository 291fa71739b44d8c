// statistics_test.cpp -- medians and percentiles compared with hand-computed values.
#include "perf/bench/statistics.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace capstan::perf {
namespace {

TEST(Statistics, MedianOfOddAndEvenCounts) {
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(median({9, 1, 4}), 4);
  EXPECT_EQ(median({4, 100, 1, 2}), 3);
  EXPECT_THROW(median({}), std::invalid_argument);
}

TEST(Statistics, P99IsNearestRank) {
  std::vector<double> samples(1000);
  std::iota(samples.begin(), samples.end(), 1);
  std::reverse(samples.begin(), samples.end());
  EXPECT_EQ(p99(samples), 990);
  samples.resize(100);  // 1000 ... 901
  EXPECT_EQ(p99(samples), 999);
  EXPECT_EQ(p99({3, 8, 5}), 8);
  EXPECT_THROW(p99({}), std::invalid_argument);
}

TEST(Statistics, SlowestIsTheMaximumOverRanks) {
  const std::vector<std::vector<double>> ranks{{1, 9, 3}, {2, 2, 5}};
  EXPECT_EQ(slowest(ranks), (std::vector<double>{2, 9, 5}));
  EXPECT_TRUE(slowest({}).empty());
  const std::vector<std::vector<double>> uneven{{1, 2}, {1}};
  EXPECT_THROW(slowest(uneven), std::invalid_argument);
}

}  // namespace
}  // namespace capstan::perf
