// word2vec_sampler_test.cpp -- the distribution of an alias sampler, measured on a grid of its random bits.
#include "train/word2vec/sampler.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace capstan::train::word2vec {
namespace {

/// The share of each row over 2^20 evenly spaced bits.
std::vector<double> shares_of(const AliasSampler& sampler, std::size_t rows) {
  std::vector<double> shares(rows);
  for (std::uint64_t high = 0; high < 1024; ++high) {
    for (std::uint64_t low = 0; low < 1024; ++low) {
      const std::uint64_t bits = (high << 54) + (1ULL << 53) + (low << 22);
      shares.at(static_cast<std::size_t>(sampler.draw(bits))) += 0x1p-20;
    }
  }
  return shares;
}

TEST(AliasSampler, DrawsRowsByTheirWeights) {
  for (const std::vector<double>& weights : {std::vector<double>{1},
                                             {1, 1},
                                             {0, 5, 0},
                                             {8, 1, 1, 1, 0.5, 1, 3, 0.001},
                                             {1, 2, 3, 4, 5, 6, 7, 1000}}) {
    double sum = 0;
    for (const double weight : weights) sum += weight;
    const auto shares = shares_of(AliasSampler(weights), weights.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      EXPECT_NEAR(shares[i], weights[i] / sum, 2e-3) << "row " << i << " of " << weights.size();
    }
  }
}

TEST(AliasSampler, NegativesHaveThePowerOfTheirCounts) {
  const std::vector<std::int64_t> counts{1000, 100, 10, 1};
  const double sum = std::pow(1000, 0.75) + std::pow(100, 0.75) + std::pow(10, 0.75) + 1;
  const auto shares = shares_of(negative_sampler(counts), counts.size());
  for (std::size_t i = 0; i < counts.size(); ++i) {
    EXPECT_NEAR(shares[i], std::pow(counts[i], 0.75) / sum, 1e-3);
  }
}

}  // namespace
}  // namespace capstan::train::word2vec
