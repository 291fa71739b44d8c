// random_source_test.cpp -- the seed alone determines the numbers; failures by a Poisson process.
#include "simulate/random_source.hpp"

#include <gtest/gtest.h>

#include "simulate/simulation.hpp"

namespace capstan::simulate {
namespace {

TEST(RandomSource, RepeatsItsNumbersForASeed) {
  RandomSource a(7);
  RandomSource b(7);
  RandomSource c(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const double value = a.uniform();
    EXPECT_EQ(value, b.uniform());
    EXPECT_GE(value, 0);
    EXPECT_LT(value, 1);
    differs |= value != c.uniform();
  }
  EXPECT_TRUE(differs);
}

/// The number of events of a Poisson process in an interval has the same mean and variance.
TEST(RandomSource, FailuresOfRanksFormAPoissonProcess) {
  constexpr int kIntervals = 20'000;
  constexpr double kExpected = 3;  // failures per interval of 1 s
  Simulation simulation;
  RandomSource random(1);
  std::vector<int> counts(kIntervals, 0);
  const std::function<void()> fail = [&] {
    const auto interval = static_cast<std::size_t>(simulation.now());
    if (interval >= counts.size()) return;
    ++counts[interval];
    simulation.after(random.exponential(1 / kExpected), fail);
  };
  simulation.after(random.exponential(1 / kExpected), fail);
  simulation.run_until(kIntervals + 100);
  double sum = 0;
  double squares = 0;
  for (const int count : counts) {
    sum += count;
    squares += count * count;
  }
  const double mean = sum / kIntervals;
  EXPECT_NEAR(mean, kExpected, 0.05);                                // 4 standard errors
  EXPECT_NEAR(squares / kIntervals - mean * mean, kExpected, 0.15);  // 4 standard errors
}

}  // namespace
}  // namespace capstan::simulate
