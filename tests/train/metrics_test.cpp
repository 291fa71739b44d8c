// metrics_test.cpp -- losses, accuracy and AUC compared with hand-computed values and definitions.
#include "train/metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "train/log_loss.hpp"
#include "train/shares.hpp"

namespace capstan::train {
namespace {

TEST(LogLoss, MatchesDefinition) {
  EXPECT_DOUBLE_EQ(log_loss(0, true), std::log(2));
  EXPECT_DOUBLE_EQ(log_loss_slope(0, true), -0.5);
  for (const double logit : {-3.0, -0.1, 0.7, 5.0}) {
    const double p = 1 / (1 + std::exp(-logit));
    EXPECT_NEAR(log_loss(logit, true), -std::log(p), 1e-13);
    EXPECT_NEAR(log_loss(logit, false), -std::log(1 - p), 1e-13);
    EXPECT_NEAR(log_loss_slope(logit, true), p - 1, 1e-15);
    EXPECT_NEAR(log_loss_slope(logit, false), p, 1e-15);
  }
}

TEST(LogLoss, IsAccurateForLargeLogits) {
  EXPECT_EQ(log_loss(1e4, false), 1e4);
  EXPECT_EQ(log_loss(-1e4, true), 1e4);
  EXPECT_EQ(log_loss(1e4, true), 0);
  EXPECT_DOUBLE_EQ(log_loss(40, true), std::exp(-40));  // 1 - probability would be 0
  EXPECT_DOUBLE_EQ(log_loss_slope(40, true), -std::exp(-40));
  EXPECT_DOUBLE_EQ(log_loss_slope(-40, false), std::exp(-40));
  EXPECT_EQ(log_loss_slope(-1e4, true), -1);
}

TEST(Auc, CountsTiesHalf) {
  EXPECT_EQ(auc({2, 3}, {0, 1}), 1);
  EXPECT_EQ(auc({0, 1}, {2, 3}), 0);
  EXPECT_EQ(auc({1, 1, 1}, {1, 1}), 0.5);
  // 0.8 is above both; each 0.4 is above 0.1 and tied with 0.4: 2 + 1.5 + 1.5 of 6.
  EXPECT_DOUBLE_EQ(auc({0.8, 0.4, 0.4}, {0.1, 0.4}), 5.0 / 6);
}

TEST(Auc, MatchesAllPairs) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int> score(0, 30);  // many ties
  std::vector<double> positive(157), negative(211);
  for (double& x : positive) x = score(random) + 4;
  for (double& x : negative) x = score(random);
  double favorable = 0;
  for (const double p : positive)
    for (const double n : negative) favorable += p > n ? 1 : p == n ? 0.5 : 0;
  EXPECT_DOUBLE_EQ(auc(positive, negative), favorable / 157 / 211);
}

TEST(Auc, IsNanWithoutBothLabels) {
  EXPECT_TRUE(std::isnan(auc({}, {1})));
  EXPECT_TRUE(std::isnan(auc({1}, {})));
  EXPECT_TRUE(std::isnan(auc({1, std::numeric_limits<double>::quiet_NaN()}, {1})));
}

TEST(Scores, AddUpForTwoClasses) {
  Scores scores;
  scores.add(2, true);
  scores.add(-1, false);
  scores.add(0.5, false);  // wrong
  scores.add(0, true);     // 0 predicts label 0: wrong
  EXPECT_EQ(scores.examples, 4);
  EXPECT_EQ(scores.accuracy(), 0.5);
  const double sum =
      std::log1p(std::exp(-2)) + std::log1p(std::exp(-1)) + std::log1p(std::exp(0.5)) + std::log(2);
  EXPECT_DOUBLE_EQ(scores.log_loss(), sum / 4);
  EXPECT_EQ(scores.auc(), 0.75);  // 2 is above both, 0 only above -1
  EXPECT_TRUE(std::isnan(Scores().log_loss()));
}

TEST(Scores, AddUpForSeveralClasses) {
  Scores scores;
  const std::vector<float> logits{1, 3, 2}, huge{1000, 0, 0}, level{1, 1};
  scores.add(logits, 1);
  scores.add(logits, 2);
  scores.add(huge, 1);
  scores.add(level, 0);  // the first of equals
  EXPECT_EQ(scores.correct, 2);
  const double total = std::log(std::exp(-2) + 1 + std::exp(-1));
  EXPECT_DOUBLE_EQ(scores.log_loss_sum, total + (total + 1) + 1000 + std::log(2));
}

TEST(Scores, MergedPartsEqualTotal) {
  std::mt19937 random(2);
  std::normal_distribution<double> normal;
  Scores total;
  std::vector<Scores> parts(7);
  for (int i = 0; i < 100; ++i) {
    const double logit = normal(random);
    const bool positive = normal(random) < logit;
    total.add(logit, positive);
    parts[static_cast<std::size_t>(i * i) % parts.size()].add(logit, positive);
  }
  Scores merged;
  for (const Scores& part : parts) merged.merge(part);
  EXPECT_EQ(merged.examples, 100);
  EXPECT_EQ(merged.correct, total.correct);
  EXPECT_EQ(merged.auc(), total.auc());
  EXPECT_NEAR(merged.log_loss(), total.log_loss(), 1e-14);
}

TEST(Shares, CoverEveryExampleOnce) {
  for (const std::int64_t total : {1, 5, 6, 7, 100}) {
    for (const std::int64_t shares : {1, 2, 3, 8}) {
      std::int64_t sum = 0, stepped = 0;
      for (std::int64_t share = 0; share < shares; ++share) {
        const std::int64_t size = share_size(total, share, shares);
        std::int64_t counted = 0;
        for (std::int64_t i = 0; i < total; ++i) counted += i % shares == share ? 1 : 0;
        EXPECT_EQ(size, counted);
        sum += size;
      }
      EXPECT_EQ(sum, total);
      for (std::int64_t step = 0; step < steps_in_epoch(total, shares, 4); ++step) {
        const std::int64_t examples = examples_in_step(total, shares, 4, step);
        EXPECT_GT(examples, 0);
        stepped += examples;
      }
      EXPECT_EQ(stepped, total);
    }
  }
}

TEST(Shares, ShuffleDependsOnlyOnArguments) {
  const auto order = shuffled(1000, 1, 2, 3);
  EXPECT_EQ(order, shuffled(1000, 1, 2, 3));
  EXPECT_NE(order, shuffled(1000, 2, 2, 3));
  EXPECT_NE(order, shuffled(1000, 1, 3, 3));
  EXPECT_NE(order, shuffled(1000, 1, 2, 4));
  EXPECT_EQ(std::set(order.begin(), order.end()).size(), 1000u);
  EXPECT_EQ(*std::max_element(order.begin(), order.end()), 999u);
  EXPECT_TRUE(shuffled(0, 1, 1, 1).empty());
}

}  // namespace
}  // namespace capstan::train
