// ids_test.cpp -- frequencies of drawn ids compared with their probabilities.
#include "perf/bench/ids.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace capstan::perf {
namespace {

constexpr int kDraws = 400'000;

/// Chi-square of observed counts; ranks with an expected count below 20 are combined.
double chi_square(const std::vector<int>& observed_counts, const std::vector<double>& probability,
                  int& cells) {
  double sum = 0;
  double rest_observed = 0;
  double rest_expected = 0;
  cells = 0;
  const auto add = [&](double observed, double expected) {
    sum += (observed - expected) * (observed - expected) / expected;
    ++cells;
  };
  for (std::size_t i = 0; i < observed_counts.size(); ++i) {
    const double expected = probability[i] * kDraws;
    if (expected >= 20) {
      add(observed_counts[i], expected);
    } else {
      rest_observed += observed_counts[i];
      rest_expected += expected;
    }
  }
  if (rest_expected > 0) add(rest_observed, rest_expected);
  return sum;
}

TEST(Zipf, DrawsRanksWithTheirProbability) {
  for (const double exponent : {0.5, 1.0, 1.05, 2.5}) {
    for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{1000}}) {
      std::vector<double> probability(n);
      double sum = 0;
      for (std::uint64_t k = 1; k <= n; ++k) sum += std::pow(static_cast<double>(k), -exponent);
      for (std::uint64_t k = 1; k <= n; ++k) {
        probability[k - 1] = std::pow(static_cast<double>(k), -exponent) / sum;
      }
      const Zipf zipf(n, exponent);
      Random random(17);
      std::vector<int> observed_counts(n);
      for (int i = 0; i < kDraws; ++i) {
        const std::uint64_t rank = zipf.draw(random);
        ASSERT_GE(rank, 1u);
        ASSERT_LE(rank, n);
        ++observed_counts[rank - 1];
      }
      int cells = 0;
      const double distance = chi_square(observed_counts, probability, cells);
      // The mean is cells - 1, the variance twice that; the limit is the mean plus 5 standard deviations.
      EXPECT_LT(distance, cells - 1 + 5 * std::sqrt(2.0 * cells)) << "n " << n << " exponent " << exponent;
    }
  }
}

TEST(Scramble, IsAPermutationThatSeparatesNeighbors) {
  for (const std::uint64_t rows : {1u, 2u, 7u, 64u, 1000u, 65536u}) {
    const Scramble scramble(rows);
    std::set<std::uint64_t> hit;
    for (std::uint64_t rank = 0; rank < rows; ++rank) hit.insert(scramble(rank));
    EXPECT_EQ(hit.size(), rows);
    EXPECT_LT(*hit.rbegin(), rows);
    if (rows < 64) continue;
    for (std::uint64_t rank = 0; rank + 1 < 20; ++rank) {
      const auto a = static_cast<std::int64_t>(scramble(rank));
      const auto b = static_cast<std::int64_t>(scramble(rank + 1));
      EXPECT_GT(std::abs(a - b), static_cast<std::int64_t>(rows / 8)) << "rows " << rows << " rank " << rank;
    }
  }
}

TEST(Ids, UniformIdsAreEquallyFrequent) {
  constexpr std::uint64_t kRows = 100;
  Ids ids("uniform", kRows, 1.05, 3);
  std::vector<std::int64_t> drawn(kDraws);
  ids.draw(drawn);
  std::vector<int> observed_counts(kRows);
  for (const std::int64_t id : drawn) ++observed_counts.at(static_cast<std::size_t>(id));
  int cells = 0;
  const double distance = chi_square(observed_counts, std::vector<double>(kRows, 1.0 / kRows), cells);
  EXPECT_LT(distance, cells - 1 + 5 * std::sqrt(2.0 * cells));
}

TEST(Ids, ZipfIdsFavorTheRowOfTheFirstRank) {
  constexpr std::uint64_t kRows = 1000;
  Ids ids("zipf", kRows, 1.05, 3);
  std::vector<std::int64_t> drawn(kDraws);
  ids.draw(drawn);
  std::vector<int> observed_counts(kRows);
  for (const std::int64_t id : drawn) ++observed_counts.at(static_cast<std::size_t>(id));
  const Scramble scramble(kRows);
  EXPECT_EQ(std::max_element(observed_counts.begin(), observed_counts.end()) - observed_counts.begin(),
            static_cast<std::int64_t>(scramble(0)));
}

TEST(Ids, SameSeedDrawsSameIds) {
  std::vector<std::int64_t> a(100), b(100), c(100);
  Ids("zipf", 5000, 1.05, 8).draw(a);
  Ids("zipf", 5000, 1.05, 8).draw(b);
  Ids("zipf", 5000, 1.05, 9).draw(c);
  EXPECT_EQ(a, b);
  EXPECT_NE(a, c);
}

}  // namespace
}  // namespace capstan::perf
