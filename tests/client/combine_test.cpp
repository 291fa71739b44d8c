// combine_test.cpp -- gradients of ids that are named twice, summed by hand and by a map.
#include "client/combine.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

namespace capstan::client {
namespace {

template <class T>
std::vector<T> values_of(const Combined& combined) {
  std::vector<T> out(combined.rows.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), combined.rows.data(), combined.rows.size());
  return out;
}

using Ids = std::vector<std::int64_t>;

TEST(Combine, SumsTheRowsOfOneId) {
  const std::vector<float> rows{1, 2, 10, 20, 100, 200, 1000, 2000};
  const Combined combined = combine(DType::float32, 2, Ids{5, 3, 5, 5}, rows.data());
  EXPECT_EQ(combined.ids, (Ids{3, 5}));
  EXPECT_EQ(values_of<float>(combined), (std::vector<float>{10, 20, 1101, 2202}));
}

TEST(Combine, AgreesWithAMapForEveryDtype) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    const std::uint64_t width = 1 + random() % 5;
    Ids ids(random() % 60);
    for (auto& id : ids) id = static_cast<std::int64_t>(random() % 20);
    std::vector<double> doubles(ids.size() * width);
    std::vector<std::int64_t> integers(doubles.size());
    std::map<std::int64_t, std::vector<double>> expected;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      auto& sum = expected[ids[i]];
      sum.resize(width);
      for (std::uint64_t j = 0; j < width; ++j) {
        integers[i * width + j] = static_cast<std::int64_t>(random() % 100);
        doubles[i * width + j] = static_cast<double>(integers[i * width + j]);
        sum[j] += doubles[i * width + j];
      }
    }
    Ids expected_ids;
    std::vector<double> expected_rows;
    for (const auto& [id, sum] : expected) {
      expected_ids.push_back(id);
      expected_rows.insert(expected_rows.end(), sum.begin(), sum.end());
    }
    const Combined a = combine(DType::float64, width, ids, doubles.data());
    EXPECT_EQ(a.ids, expected_ids);
    EXPECT_EQ(values_of<double>(a), expected_rows);
    const Combined b = combine(DType::int64, width, ids, integers.data());
    EXPECT_EQ(b.ids, expected_ids);
    EXPECT_EQ(values_of<std::int64_t>(b),
              std::vector<std::int64_t>(expected_rows.begin(), expected_rows.end()));
  }
}

TEST(Combine, SumsInTheOrderOfTheCall) {
  // 1e8 + 1 - 1e8 is 0 in single precision, 1e8 - 1e8 + 1 is 1.
  const std::vector<float> one{1e8F, 1, -1e8F};
  EXPECT_EQ(values_of<float>(combine(DType::float32, 1, Ids{7, 7, 7}, one.data())), std::vector<float>{0});
  const std::vector<float> two{1e8F, -1e8F, 1};
  EXPECT_EQ(values_of<float>(combine(DType::float32, 1, Ids{7, 7, 7}, two.data())), std::vector<float>{1});
}

TEST(Combine, NothingStaysNothing) {
  const Combined combined = combine(DType::float32, 3, {}, nullptr);
  EXPECT_TRUE(combined.ids.empty());
  EXPECT_TRUE(combined.rows.empty());
}

TEST(Combine, KnowsWhatNeedsNoCombining) {
  EXPECT_TRUE(strictly_increasing(Ids{}));
  EXPECT_TRUE(strictly_increasing(Ids{4}));
  EXPECT_TRUE(strictly_increasing(Ids{1, 2, 9}));
  EXPECT_FALSE(strictly_increasing(Ids{1, 1}));
  EXPECT_FALSE(strictly_increasing(Ids{2, 1}));
  EXPECT_TRUE(all_different(Ids{}));
  EXPECT_TRUE(all_different(Ids{3, 1, 2}));
  EXPECT_FALSE(all_different(Ids{3, 1, 3}));
}

}  // namespace
}  // namespace capstan::client
