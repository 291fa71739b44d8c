// embedding_table_test.cpp -- tables of 16-bit floats that are read and updated as floats.
#include "train/embedding_table.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "capstan/capstan.hpp"
#include "support/rank_threads.hpp"

namespace capstan::train {
namespace {

using TableIds = std::vector<std::int64_t>;
using TableFloats = std::vector<float>;

/// 1 / 3 has no exact value in any of the dtypes.
constexpr float kThird = 1.0F / 3;
/// Less than half of the distance of 1 to the next number, in float16 and in bfloat16.
constexpr float kSmallUpdate = 0x1p-13F;

float rounded_to(DType dtype, float value) {
  switch (dtype) {
    case DType::float16:
      return static_cast<float>(float16(value));
    case DType::bfloat16:
      return static_cast<float>(bfloat16(value));
    default:
      return value;
  }
}

/// Two ps that add every gradient; the test's thread is the coordinator.
class EmbeddingTableTest : public testing::TestWithParam<DType> {
 protected:
  EmbeddingTable<Variable> variable(const std::string& name, bool stochastic = false,
                                    std::int64_t width = 2) {
    return {{GetParam(), stochastic},
            name,
            Shape{4, width},
            initializers::constant(1),
            VariableOptions{.optimizer = optimizers::SGD{.learning_rate = -1}}};
  }
  EmbeddingTable<DynamicTable> dynamic(const std::string& name, bool stochastic = false,
                                       std::int64_t width = 2) {
    return {{GetParam(), stochastic},
            name,
            width,
            initializers::constant(1),
            TableOptions{.optimizer = optimizers::SGD{.learning_rate = -1},
                         .missing = MissingKeys::initial,
                         .max_keys = 100}};
  }
  static void flush(const auto& table) {
    table.visit([](const auto& typed) { typed.flush(); });
  }
  float rounded(float value) const { return rounded_to(GetParam(), value); }

  RankThreads ranks_{{.ranks = 4, .flags = {{"ps", "2"}}}};
  ParameterServerStrategy strategy_{ranks_.cluster(), {.variable_partitioner = FixedShardsPartitioner{2}}};
  ParameterServerStrategy::Scope scope_ = strategy_.scope();
};

TEST_P(EmbeddingTableTest, HasTheDtypeAndTheShapeOfItsVariable) {
  const auto table = variable("t", false, 3);
  EXPECT_EQ(table.dtype(), GetParam());
  EXPECT_EQ(table.rows(), 4U);
  EXPECT_EQ(table.width(), 3U);
}

TEST_P(EmbeddingTableTest, ReadsAndPushesFloats) {
  const auto table = variable("t");
  table.push(TableIds{3, 1}, TableFloats{1, 2, kThird, -4});
  flush(table);
  const TableFloats expected{rounded(1 + rounded(kThird)), -3, 1, 1, 2, 3};
  TableFloats rows(6);
  table.lookup(TableIds{1, 0, 3}, rows);
  EXPECT_EQ(rows, expected);
  EXPECT_EQ(table.lookup(TableIds{1, 0, 3}).values, expected);
  TableFloats block(4);
  table.pull(1, block);
  EXPECT_EQ(block, (TableFloats{expected[0], -3, 1, 1}));
}

TEST_P(EmbeddingTableTest, ReadsAndPushesTwoTablesTogether) {
  const auto both = [&](const auto& a, const auto& b) {
    using Table = std::remove_cvref_t<decltype(a)>;
    const TableIds ids_a{2}, ids_b{0, 3};
    const TableFloats gradient_a{kThird, 5}, gradient_b{1, kThird};
    Table::push_all({a, ids_a, gradient_a}, {b, ids_b, gradient_b});
    flush(a);
    TableFloats rows_a(2), rows_b(2);
    Table::lookup_all({a, ids_a, rows_a}, {b, ids_b, rows_b});
    EXPECT_EQ(rows_a, (TableFloats{rounded(1 + rounded(kThird)), 6}));
    EXPECT_EQ(rows_b, (TableFloats{2, rounded(1 + rounded(kThird))}));
  };
  both(variable("a"), variable("b", false, 1));
  both(dynamic("c"), dynamic("d", false, 1));
}

TEST_P(EmbeddingTableTest, IsSerialized) {
  const auto table = variable("t");
  const auto same = from_bytes<EmbeddingTable<Variable>>(to_bytes(table));
  EXPECT_EQ(same.dtype(), GetParam());
  same.push(TableIds{0}, TableFloats{1, 0});
  flush(same);
  EXPECT_EQ(table.lookup(TableIds{0}).values, (TableFloats{2, 1}));
}

INSTANTIATE_TEST_SUITE_P(DTypes, EmbeddingTableTest,
                         testing::Values(DType::float32, DType::float16, DType::bfloat16),
                         [](const auto& test) { return std::string(to_string(test.param)); });

/// Of 16-bit tables only.
class NarrowTableTest : public EmbeddingTableTest {};

TEST_P(NarrowTableTest, RoundsGradientsToNearest) {
  constexpr std::int64_t kWidth = 64;
  const auto table = variable("t", true, kWidth);
  table.push(TableIds{0}, TableFloats(kWidth, -1));
  table.push(TableIds{0}, TableFloats(kWidth, kThird));  // the sum with 0 needs no rounding
  flush(table);
  EXPECT_EQ(table.lookup(TableIds{0}).values, TableFloats(kWidth, rounded(kThird)));
}

TEST_P(NarrowTableTest, OnlyStochasticRoundingAppliesSmallUpdates) {
  constexpr int kPushes = 32;
  constexpr std::int64_t kWidth = 512;
  const auto mean_after_pushes = [&](const auto& table) {
    const TableIds ids{1, 2};
    const TableFloats gradient(2 * kWidth, kSmallUpdate);
    for (int i = 0; i < kPushes; ++i) table.push(ids, gradient);
    flush(table);
    const auto rows = table.lookup(ids);
    return std::accumulate(rows.values.begin(), rows.values.end(), 0.0) / (2 * kWidth);
  };
  EXPECT_EQ(mean_after_pushes(variable("a", false, kWidth)), 1);
  EXPECT_EQ(mean_after_pushes(dynamic("b", false, kWidth)), 1);
  // A push raises an element of bfloat16 by 2^-7 with a probability of 2^-6, so that the standard deviation
  // of the mean is 2^-7 sqrt(32 / 64 / 1024) = 2e-4. It is less for float16.
  constexpr double kExpected = 1 + kPushes * static_cast<double>(kSmallUpdate);
  EXPECT_NEAR(mean_after_pushes(variable("c", true, kWidth)), kExpected, 1e-3);
  EXPECT_NEAR(mean_after_pushes(dynamic("d", true, kWidth)), kExpected, 1e-3);
}

INSTANTIATE_TEST_SUITE_P(DTypes, NarrowTableTest, testing::Values(DType::float16, DType::bfloat16),
                         [](const auto& test) { return std::string(to_string(test.param)); });

}  // namespace
}  // namespace capstan::train
