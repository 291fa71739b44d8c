// gradient_sums_test.cpp -- nothing is lost or counted twice; frequent ids get sums; equal calls, equal
// results.
#include "client/gradient_sums.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace capstan::client {
namespace {

using Ids = std::vector<std::int64_t>;
constexpr std::uint64_t kWidth = 3;

/// A copy of Rows, with the rows in the order of the ids.
struct Copy {
  Ids ids;
  std::vector<float> values;
  bool operator==(const Copy&) const = default;
};

Copy copy_of(const GradientSums::Rows& rows) {
  Copy copy{{rows.ids.begin(), rows.ids.end()}, std::vector<float>(rows.ids.size() * kWidth)};
  for (std::size_t i = 0; i < rows.ids.size(); ++i) {
    std::memcpy(copy.values.data() + i * kWidth, rows.values + rows.order[i] * kWidth * sizeof(float),
                kWidth * sizeof(float));
  }
  return copy;
}

Copy add(GradientSums& sums, const Ids& ids, const std::vector<float>& gradient) {
  return copy_of(sums.add(ids, reinterpret_cast<const std::byte*>(gradient.data())));
}

/// A gradient for these ids, of small integers, so that sums are exact.
std::vector<float> gradient_for(const Ids& ids, std::mt19937& random) {
  std::vector<float> gradient(ids.size() * kWidth);
  for (float& value : gradient) value = static_cast<float>(static_cast<int>(random() % 9) - 4);
  return gradient;
}

/// Mostly small numbers.
Ids random_ids(std::size_t count, std::mt19937& random) {
  Ids ids(count);
  for (auto& id : ids) id = static_cast<std::int64_t>(random() % (1 + random() % (1 + random() % 500)));
  return ids;
}

void accumulate(std::map<std::int64_t, std::vector<float>>& totals, const Copy& rows) {
  for (std::size_t i = 0; i < rows.ids.size(); ++i) {
    auto& total = totals[rows.ids[i]];
    total.resize(kWidth);
    for (std::size_t j = 0; j < kWidth; ++j) total[j] += rows.values[i * kWidth + j];
  }
}

TEST(GradientSums, RowsAndSumsAddUpToTheGradients) {
  std::mt19937 random(1);
  GradientSums sums(DType::float32, kWidth, {.rows = 32, .pushes = 5});
  std::map<std::int64_t, std::vector<float>> pushed;
  std::map<std::int64_t, std::vector<float>> received;
  std::size_t rows_pushed = 0;
  std::size_t rows_sent = 0;
  for (int push = 1; push <= 2000; ++push) {
    const Ids ids = random_ids(random() % 60, random);
    const std::vector<float> gradient = gradient_for(ids, random);
    accumulate(pushed, {ids, gradient});
    const Copy rest = add(sums, ids, gradient);
    accumulate(received, rest);
    rows_pushed += ids.size();
    rows_sent += rest.ids.size();
    ASSERT_EQ(sums.due(), push % 5 == 0);
    if (!sums.due()) continue;
    const Copy taken = copy_of(sums.take());
    EXPECT_EQ(std::set<std::int64_t>(taken.ids.begin(), taken.ids.end()).size(), taken.ids.size());
    accumulate(received, taken);
    rows_sent += taken.ids.size();
    EXPECT_TRUE(sums.idle());
  }
  EXPECT_EQ(received, pushed);
  EXPECT_LT(rows_sent, rows_pushed);
}

TEST(GradientSums, FrequentIdTakesThePlaceOfRareOnesAndKeepsIt) {
  GradientSums sums(DType::float32, kWidth, {.rows = 1, .pushes = 1});  // two places
  const std::vector<float> one(kWidth, 1);
  const auto has_sum = [&](std::int64_t id) {
    const bool has = add(sums, {id}, one).ids.empty();
    (void)sums.take();
    return has;
  };
  constexpr std::int64_t kFrequent = 100;
  for (std::int64_t rare = 0; rare < 8; ++rare) (void)has_sum(rare);
  for (int push = 0; push < 10; ++push) (void)has_sum(kFrequent);
  EXPECT_TRUE(has_sum(kFrequent));
  for (std::int64_t rare = 0; rare < 8; ++rare) (void)has_sum(rare);
  EXPECT_TRUE(has_sum(kFrequent));
}

TEST(GradientSums, ClearRestoresTheInitialState) {
  GradientSums sums(DType::float32, kWidth, {.rows = 16, .pushes = 3});
  const auto run = [&] {
    std::mt19937 random(7);
    std::vector<Copy> sent;
    for (int push = 0; push < 20; ++push) {
      const Ids ids = random_ids(40, random);
      sent.push_back(add(sums, ids, gradient_for(ids, random)));
      if (sums.due()) sent.push_back(copy_of(sums.take()));
    }
    return sent;
  };
  const auto first = run();
  ASSERT_FALSE(sums.idle());
  sums.clear();
  EXPECT_TRUE(sums.idle());
  EXPECT_EQ(run(), first);
}

}  // namespace
}  // namespace capstan::client
