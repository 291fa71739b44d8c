// combine_test.cpp -- sums of the gradients of duplicate ids, compared with a map.
#include "client/combine.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>

namespace capstan::client {
namespace {

using Ids = std::vector<std::int64_t>;

/// A copy of a combiner's result.
template <class T>
struct Combined {
  Ids ids;
  std::vector<T> values;
  bool operator==(const Combined&) const = default;
};

template <class T>
Combined<T> combine(Combiner& combiner, std::uint64_t width, const Ids& ids, const std::vector<T>& rows,
                    std::uint64_t table_rows = 1000) {
  const auto made = combiner.combine(dtype_of<T>, width, table_rows, ids, rows.data());
  Combined<T> out{{made.ids.begin(), made.ids.end()}, std::vector<T>(made.ids.size() * width)};
  if (!out.values.empty()) std::memcpy(out.values.data(), made.values, out.values.size() * sizeof(T));
  return out;
}

/// Numbers of table rows for which the combiner uses a bitmap, and does not use one.
constexpr std::uint64_t kTables[] = {1000, std::uint64_t{1} << 40};

TEST(Combine, OrdersIdsByFirstAppearance) {
  for (const std::uint64_t table : kTables) {
    Combiner combiner;
    const std::vector<float> rows{1, 2, 10, 20, 100, 200, 1000, 2000};
    const Combined<float> expected{{5, 3}, {1101, 2202, 10, 20}};
    EXPECT_EQ(combine(combiner, 2, {5, 3, 5, 5}, rows, table), expected);
    EXPECT_EQ(combine(combiner, 2, {5, 3, 5, 5}, rows, table), expected) << "second call";
  }
}

TEST(Combine, AgreesWithAMapForEveryDtype) {
  std::mt19937 random(1);
  Combiner combiner;
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t table = kTables[round % 2];
    const std::uint64_t width = 1 + random() % 5;
    Ids ids(random() % 60);
    for (auto& id : ids) id = static_cast<std::int64_t>(random() % (1 + random() % 300));
    std::vector<double> doubles(ids.size() * width);
    std::vector<std::int64_t> integers(doubles.size());
    std::vector<float> floats(doubles.size());
    std::map<std::int64_t, std::vector<double>> sums;
    Ids order;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!sums.contains(ids[i])) order.push_back(ids[i]);
      auto& sum = sums[ids[i]];
      sum.resize(width);
      for (std::uint64_t j = 0; j < width; ++j) {
        const std::size_t at = i * width + j;
        integers[at] = static_cast<std::int64_t>(random() % 100);
        doubles[at] = static_cast<double>(integers[at]);
        floats[at] = static_cast<float>(integers[at]);
        sum[j] += doubles[at];
      }
    }
    std::vector<double> expected;
    for (const auto id : order) expected.insert(expected.end(), sums[id].begin(), sums[id].end());
    EXPECT_EQ(combine(combiner, width, ids, doubles, table), (Combined<double>{order, expected}));
    EXPECT_EQ(combine(combiner, width, ids, integers, table),
              (Combined<std::int64_t>{order, {expected.begin(), expected.end()}}));
    EXPECT_EQ(combine(combiner, width, ids, floats, table),
              (Combined<float>{order, {expected.begin(), expected.end()}}));
  }
}

TEST(Combine, SumsInTheOrderOfTheCall) {
  Combiner combiner;
  // 1e8 + 1 - 1e8 is 0 in single precision, 1e8 - 1e8 + 1 is 1.
  EXPECT_EQ(combine<float>(combiner, 1, {7, 7, 7}, {1e8F, 1, -1e8F}).values, std::vector<float>{0});
  EXPECT_EQ(combine<float>(combiner, 1, {7, 7, 7}, {1e8F, -1e8F, 1}).values, std::vector<float>{1});
}

TEST(Combine, ReturnsTheArgumentsWithoutDuplicates) {
  for (const std::uint64_t table : kTables) {
    Combiner combiner;
    const std::vector<float> rows{1, 2, 3};
    for (const Ids& ids : {Ids{}, Ids{4}, Ids{1, 2, 9}, Ids{3, 1, 2}}) {
      const auto made = combiner.combine(DType::float32, 1, table, ids, rows.data());
      EXPECT_EQ(made.ids.data(), ids.data());
      EXPECT_EQ(made.ids.size(), ids.size());
      EXPECT_EQ(static_cast<const void*>(made.values), rows.data());
    }
  }
}

TEST(Combine, DetectsStrictlyIncreasingIds) {
  EXPECT_TRUE(strictly_increasing(Ids{}));
  EXPECT_TRUE(strictly_increasing(Ids{4}));
  EXPECT_TRUE(strictly_increasing(Ids{1, 2, 9}));
  EXPECT_FALSE(strictly_increasing(Ids{1, 1}));
  EXPECT_FALSE(strictly_increasing(Ids{2, 1}));
}

}  // namespace
}  // namespace capstan::client
