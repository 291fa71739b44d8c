// mf_test.cpp -- losses of mf by definition, their gradients by difference quotients, and training of small
// matrices in one process; ranking of items by hand-computed values.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <set>
#include <vector>

#include "train/mf/bpr.hpp"
#include "train/mf/factorization.hpp"
#include "train/mf/top_items.hpp"

namespace capstan::train::mf {
namespace {

constexpr std::size_t kFactors = 3, kWidth = 4;

BatchRows random_mf_rows(std::size_t users, std::size_t items, std::size_t width, unsigned seed,
                         float stddev) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, stddev);
  BatchRows rows{std::vector<float>(users * width), std::vector<float>(items * width)};
  for (float& x : rows.users) x = normal(random);
  for (float& x : rows.items) x = normal(random);
  return rows;
}

BatchRows zeros_like(const BatchRows& rows) {
  return {std::vector<float>(rows.users.size()), std::vector<float>(rows.items.size())};
}

double product(const float* a, const float* b, std::size_t size) {
  double sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

/// Compares `gradients` with difference quotients of `objective` in each element of `rows`.
void expect_gradients(BatchRows rows, const BatchRows& gradients,
                      const std::function<double(const BatchRows&)>& objective) {
  constexpr float kStep = 1e-2F;
  for (const auto& [member, name] :
       {std::pair(&BatchRows::users, "users"), std::pair(&BatchRows::items, "items")}) {
    ASSERT_FALSE((rows.*member).empty());
    for (std::size_t i = 0; i < (rows.*member).size(); ++i) {
      float& x = (rows.*member)[i];
      const float old = x;
      x = old + kStep;
      const double above = objective(rows), high = static_cast<double>(x);
      x = old - kStep;
      const double below = objective(rows), low = static_cast<double>(x);
      x = old;
      const double quotient = (above - below) / (high - low);
      EXPECT_NEAR((gradients.*member)[i], quotient, 2e-4 * std::max(1.0, std::abs(quotient)))
          << name << " " << i;
    }
  }
}

/// Two ratings by user 0, and two of item 1.
const RatingBatch kBatch{.users = {0, 0, 1}, .items = {0, 1, 1}, .values = {4, 1.5F, -2}};

double rating_objective(const BatchRows& rows, double l2, double mean) {
  double sum = 0;
  for (std::size_t n = 0; n < kBatch.size(); ++n) {
    const float* p = rows.users.data() + kBatch.users[n] * kWidth;
    const float* q = rows.items.data() + kBatch.items[n] * kWidth;
    const double error = static_cast<double>(kBatch.values[n]) - mean - static_cast<double>(p[kFactors]) -
                         static_cast<double>(q[kFactors]) - product(p, q, kFactors);
    sum += error * error + l2 * (product(p, p, kWidth) + product(q, q, kWidth));
  }
  return sum;
}

TEST(Factorization, GradientsOfRatingsMatchDifferenceQuotients) {
  const BatchRows rows = random_mf_rows(2, 2, kWidth, 1, 0.6F);
  for (const double l2 : {0.0, 0.3}) {
    BatchRows gradients = zeros_like(rows);
    const BatchLoss loss = add_rating_gradients(kBatch, rows, {kFactors, l2}, 0.5, 0.25, gradients);
    EXPECT_NEAR(loss.loss + loss.penalty, rating_objective(rows, l2, 0.5), 1e-5);
    EXPECT_NEAR(loss.loss, rating_objective(rows, 0, 0.5), 1e-5);
    expect_gradients(rows, gradients,
                     [&](const BatchRows& at) { return 0.25 * rating_objective(at, l2, 0.5); });
  }
}

TEST(Factorization, PredictsUnknownUsersAndItemsByTheOtherBias) {
  const BatchRows rows{{1, 2, 3, 0.5F}, {2, 0, -1, 0.25F}};
  constexpr std::uint32_t kNone = RatingBatch::kNoRow;
  const RatingBatch batch{
      .users = {0, 0, kNone, kNone}, .items = {0, kNone, 0, kNone}, .values = {0, 0, 0, 0}};
  EXPECT_DOUBLE_EQ(predict(batch, 0, rows, kFactors, 3), 3 + 0.5 + 0.25 + 2 - 3);
  EXPECT_DOUBLE_EQ(predict(batch, 1, rows, kFactors, 3), 3.5);
  EXPECT_DOUBLE_EQ(predict(batch, 2, rows, kFactors, 3), 3.25);
  EXPECT_DOUBLE_EQ(predict(batch, 3, rows, kFactors, 3), 3);
}

/// Full-batch gradient descent.
template <class AddGradients>
void descend(BatchRows& rows, int steps, float rate, const AddGradients& add_gradients) {
  for (int step = 0; step < steps; ++step) {
    BatchRows gradients = zeros_like(rows);
    add_gradients(rows, gradients);
    for (std::size_t i = 0; i < rows.users.size(); ++i) rows.users[i] -= rate * gradients.users[i];
    for (std::size_t i = 0; i < rows.items.size(); ++i) rows.items[i] -= rate * gradients.items[i];
  }
}

TEST(Factorization, LearnsALowRankMatrixFromHalfOfIt) {
  // 40 x 30 ratings of rank 2 plus biases, without noise: the other half follows from one half.
  constexpr std::size_t kUsers = 40, kItems = 30, kRank = 2;
  const BatchRows truth = random_mf_rows(kUsers, kItems, kRank + 1, 2, 0.8F);
  RatingBatch train, test;
  std::mt19937 random(3);
  for (std::uint32_t u = 0; u < kUsers; ++u) {
    for (std::uint32_t i = 0; i < kItems; ++i) {
      RatingBatch& batch = random() % 2 == 0 ? train : test;
      batch.users.push_back(u);
      batch.items.push_back(i);
      batch.values.push_back(0);
      batch.values.back() = static_cast<float>(predict(batch, batch.size() - 1, truth, kRank, 3));
    }
  }
  BatchRows rows = random_mf_rows(kUsers, kItems, kRank + 1, 4, 0.1F);
  const FactorizationOptions options{kRank, 1e-4};
  descend(rows, 1000, 0.02F, [&](const BatchRows& at, BatchRows& gradients) {
    add_rating_gradients(train, at, options, 3, 1, gradients);
  });
  double squares = 0;
  for (std::size_t n = 0; n < test.size(); ++n) {
    const double error = static_cast<double>(test.values[n]) - predict(test, n, rows, kRank, 3);
    squares += error * error;
  }
  EXPECT_LT(std::sqrt(squares / static_cast<double>(test.size())), 0.03);
}

const PairBatch kPairs{.users = {0, 1, 1}, .positives = {0, 1, 0}, .negatives = {1, 2, 2}};

double pair_objective(const BatchRows& rows, double l2) {
  double sum = 0;
  for (std::size_t n = 0; n < kPairs.size(); ++n) {
    const float* p = rows.users.data() + kPairs.users[n] * kWidth;
    const float* a = rows.items.data() + kPairs.positives[n] * kWidth;
    const float* b = rows.items.data() + kPairs.negatives[n] * kWidth;
    const double margin = product(p, a, kFactors) - product(p, b, kFactors) +
                          static_cast<double>(a[kFactors]) - static_cast<double>(b[kFactors]);
    sum += std::log(1 + std::exp(-margin)) +
           l2 * (product(p, p, kFactors) + product(a, a, kWidth) + product(b, b, kWidth));
  }
  return sum;
}

TEST(Bpr, GradientsOfPairsMatchDifferenceQuotients) {
  const BatchRows rows = random_mf_rows(2, 3, kWidth, 5, 0.6F);
  for (const double l2 : {0.0, 0.3}) {
    BatchRows gradients = zeros_like(rows);
    const BatchLoss loss = add_pair_gradients(kPairs, rows, {kFactors, l2}, 0.25, gradients);
    EXPECT_NEAR(loss.loss + loss.penalty, pair_objective(rows, l2), 1e-5);
    EXPECT_NEAR(loss.loss, pair_objective(rows, 0), 1e-5);
    expect_gradients(rows, gradients, [&](const BatchRows& at) { return 0.25 * pair_objective(at, l2); });
  }
}

TEST(Bpr, DrawsEveryItemThatTheUserDoesNotHave) {
  const std::vector<Rating> ratings{{0, 1, 0}, {0, 4, 0}, {1, 0, 0}, {1, 1, 0},
                                    {1, 2, 0}, {1, 3, 0}, {1, 4, 0}};
  const ItemsByUser known{ratings};
  std::set<std::int32_t> drawn;
  for (std::uint64_t stream = 0; stream < 200; ++stream) {
    const auto item = draw_negative(known, 0, 5, CounterRng(1, stream));
    ASSERT_TRUE(item);
    drawn.insert(*item);
    EXPECT_FALSE(draw_negative(known, 1, 5, CounterRng(1, stream))) << "the user has all items";
  }
  EXPECT_EQ(drawn, (std::set<std::int32_t>{0, 2, 3}));
}

TEST(Bpr, RanksTheBlockOfTheUserFirst) {
  // Users and items form three blocks. A user has two thirds of the items of the block; the others are
  // wanted.
  constexpr std::int32_t kUsers = 30, kItems = 90, kBlocks = 3;
  std::vector<Rating> have, want;
  for (std::int32_t u = 0; u < kUsers; ++u) {
    for (std::int32_t i = u % kBlocks; i < kItems; i += kBlocks) {
      ((u / kBlocks + i / kBlocks) % 3 == 0 ? want : have).push_back({u, i, 1});
    }
  }
  const ItemsByUser known{have}, wanted{want};
  BatchRows rows = random_mf_rows(kUsers, kItems, kWidth, 6, 0.1F);
  std::uint64_t stream = 0;
  descend(rows, 300, 0.05F, [&](const BatchRows& at, BatchRows& gradients) {
    PairBatch batch;
    for (const Rating& pair : have) {
      batch.users.push_back(static_cast<std::uint32_t>(pair.user));
      batch.positives.push_back(static_cast<std::uint32_t>(pair.item));
      batch.negatives.push_back(static_cast<std::uint32_t>(
          draw_negative(known, pair.user, kItems, CounterRng(7, stream++)).value()));
    }
    add_pair_gradients(batch, at, {kFactors, 1e-3}, 1, gradients);
  });
  for (std::int32_t u = 0; u < kUsers; ++u) {
    std::vector<float> scores(kItems);
    for (std::int32_t i = 0; i < kItems; ++i) {
      const float* p = rows.users.data() + static_cast<std::size_t>(u) * kWidth;
      const float* q = rows.items.data() + static_cast<std::size_t>(i) * kWidth;
      scores[static_cast<std::size_t>(i)] = static_cast<float>(product(p, q, kFactors)) + q[kFactors];
    }
    EXPECT_EQ(rank_items(scores, known[u], wanted[u]).recall, 1) << "user " << u;
  }
}

TEST(TopItems, MatchHandComputedValues) {
  // 25 items with descending scores; 2 is known, so that item 3 has rank 3, and item 21 rank 21.
  std::vector<float> scores(25);
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<float>(100 - i);
  const std::vector<std::int32_t> known{2}, wanted{0, 3, 21, 30};
  const RankingQuality quality = rank_items(scores, known, wanted);
  EXPECT_DOUBLE_EQ(quality.recall, 0.5);
  const double ideal = 1 + 1 / std::log2(3.0) + 1 / std::log2(4.0) + 1 / std::log2(5.0);
  EXPECT_DOUBLE_EQ(quality.ndcg, (1 + 1 / std::log2(4.0)) / ideal);
}

TEST(TopItems, LowerItemWinsATieAndNanIsLast) {
  std::vector<float> scores(30, 1);
  scores[0] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::int32_t> none;
  EXPECT_EQ(rank_items(scores, none, std::vector{0}).recall, 0);
  scores[0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(rank_items(scores, none, std::vector{20}).recall, 1);
  EXPECT_EQ(rank_items(scores, none, std::vector{21}).recall, 0);
}

TEST(TopItems, ManyWantedItemsCanReachAnNdcgOf1) {
  std::vector<float> scores(50, 1);
  std::vector<std::int32_t> wanted(40);
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] = static_cast<std::int32_t>(i);
  const RankingQuality quality = rank_items(scores, {}, wanted);
  EXPECT_DOUBLE_EQ(quality.ndcg, 1);
  EXPECT_DOUBLE_EQ(quality.recall, 0.5);
}

TEST(RankItems, IgnoresKnownItemsWithoutAScore) {
  std::vector<float> scores{1, 2, 3};
  const RankingQuality quality =
      rank_items(scores, std::vector<std::int32_t>{2, 3, 4}, std::vector<std::int32_t>{1});
  EXPECT_EQ(quality.recall, 1);
  EXPECT_EQ(quality.ndcg, 1);
}

}  // namespace
}  // namespace capstan::train::mf
