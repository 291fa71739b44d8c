// dynamic_table_test.cpp -- the public interface of dynamic tables.
// Tests: src/strategy/create_once.cpp
#include "capstan/dynamic_table.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "capstan/embedding.hpp"
#include "capstan/strategy.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using Keys = std::vector<std::int64_t>;
using Floats = std::vector<float>;
using testing::ElementsAre;

const TableOptions kCounting{.optimizer = optimizers::SGD{.learning_rate = -1}, .max_keys = 1000};

class DynamicTableTest : public testing::Test {
 protected:
  RankThreads ranks_{{.ranks = 4, .flags = {{"ps", "2"}}}};
  ParameterServerStrategy strategy_{ranks_.cluster()};
  ParameterServerStrategy::Scope scope_{&strategy_.implementation()};
};

TEST_F(DynamicTableTest, ReturnsItsProperties) {
  const DynamicTable<float> t("user", 3, initializers::constant(2), kCounting);
  EXPECT_EQ(t.name(), "user");
  EXPECT_EQ(t.dtype(), DType::float32);
  EXPECT_EQ(t.width(), 3U);
  EXPECT_EQ(t.size(), 0U);
  EXPECT_EQ(t.shards().size(), 2U);
  EXPECT_GE(t.statistics().max_keys, 1000U);
  EXPECT_EQ(t.missing(), MissingKeys::zeros);
}

TEST_F(DynamicTableTest, AddsLooksUpAndErasesKeys) {
  const DynamicTable<float> t("user", 2, initializers::constant(1), kCounting);
  t.push(Keys{-5, 7}, Floats{1, 2, 3, 4});
  t.flush();
  EXPECT_EQ(t.lookup(Keys{7, 100, -5}).values, (Floats{4, 5, 0, 0, 2, 3}));
  EXPECT_EQ(t.lookup_or_insert(Keys{100, 7}).values, (Floats{1, 1, 4, 5}));
  t.assign(Keys{200}, Floats{8, 9});
  EXPECT_THAT(t.contains(Keys{100, 200, 300}), ElementsAre(1, 1, 0));
  EXPECT_EQ(t.size(), 4U);
  t.erase(Keys{7, 300});
  EXPECT_EQ(t.lookup(Keys{7, 200}).values, (Floats{0, 0, 8, 9}));
  EXPECT_EQ(t.statistics().erased, 1U);
}

TEST_F(DynamicTableTest, CountsTheKeysThatMappedLookupsFind) {
  const DynamicTable<float> t("user", 1, {}, kCounting);
  t.insert(Keys{1, 2, 3});
  const cluster::KeyCounts before = ranks_.runtime().traffic().metrics().keys;
  (void)t.lookup(Keys{1, 2, 3, 1, 8, 9});
  const cluster::KeyCounts now = ranks_.runtime().traffic().metrics().keys;
  EXPECT_EQ(now.found - before.found, 4U);
  EXPECT_EQ(now.missing - before.missing, 2U);
}

TEST_F(DynamicTableTest, ExportsAllRows) {
  const DynamicTable<float> t("user", 1, {}, kCounting);
  Keys keys(500);
  Floats values(500);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = hash_key("k", i);
    values[i] = static_cast<float>(i);
  }
  t.assign(keys, values);
  std::map<std::int64_t, float> exported;
  t.export_rows([&](std::span<const std::int64_t> some, const Rows<float>& rows) {
    for (std::size_t i = 0; i < some.size(); ++i) exported[some[i]] = rows[i][0];
  });
  ASSERT_EQ(exported.size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(exported.at(keys[i]), values[i]);
}

TEST(DynamicTable, ExportsExactRowsThoughLookupsAreRounded) {
  RankThreads ranks{{.ranks = 3, .flags = {{"ps", "1"}, {"window", "am"}}}};
  ParameterServerStrategy strategy{ranks.cluster()};
  const ParameterServerStrategy::Scope scope{&strategy.implementation()};
  const DynamicTable<float> t(
      "t", 16, {}, {.max_keys = 100, .communication_dtype = DType::bfloat16, .int8_lookups = true});
  Floats row(16);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = std::sin(static_cast<float>(i));
  t.assign(Keys{7}, row);
  EXPECT_NE(t.lookup(Keys{7}).values, Buffer<float>(row));
  Floats exported;
  t.export_rows([&](std::span<const std::int64_t>, const Rows<float>& rows) {
    exported.assign(rows.values.begin(), rows.values.end());
  });
  EXPECT_EQ(exported, row);
}

TEST(DynamicTable, LooksUpInt8RowsAsStored) {
  for (const char* window : {"auto", "am"}) {
    RankThreads ranks{{.ranks = 3, .flags = {{"ps", "1"}, {"window", window}}}};
    ParameterServerStrategy strategy{ranks.cluster()};
    const ParameterServerStrategy::Scope scope{&strategy.implementation()};
    for (const std::int64_t dim : {4, 8, 64}) {
      SCOPED_TRACE(std::string(window) + ' ' + std::to_string(dim));
      const DynamicTable<float> t(
          "t" + std::to_string(dim), dim, {},
          {.max_keys = 100, .int8_rows = true, .communication_dtype = DType::bfloat16});
      Floats row(static_cast<std::size_t>(dim));
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = std::sin(static_cast<float>(i));
      t.assign(Keys{7}, row);
      Buffer<float> exported;
      t.export_rows([&](std::span<const std::int64_t>, const Rows<float>& rows) { exported = rows.values; });
      EXPECT_NE(exported, Buffer<float>(row));
      EXPECT_EQ(t.lookup(Keys{7}).values, exported);
    }
  }
}

TEST_F(DynamicTableTest, CombinesLookupsAndPushesWithVariables) {
  const DynamicTable<float> t("user", 1, {}, kCounting);
  const Variable<double> v("v", Shape{3}, {}, {optimizers::SGD{.learning_rate = -1}});
  const Keys keys{1'000'000'007};
  const Keys ids{2};
  const Floats t_gradient{5};
  const std::vector<double> v_gradient{6};
  push_all(Push{t, keys, t_gradient}, Push{v, ids, v_gradient});
  t.flush();
  Floats t_out(1);
  std::vector<double> v_out(1);
  lookup_all(Lookup{t, keys, t_out}, Lookup{v, ids, v_out});
  EXPECT_EQ(t_out[0], 5);
  EXPECT_EQ(v_out[0], 6);
}

TEST_F(DynamicTableTest, WorksWithEmbeddingLookups) {
  const DynamicTable<float> t("user", 2, {}, kCounting);
  t.assign(Keys{-9, 30}, Floats{1, 2, 3, 4});
  const auto batch = RaggedIds::from_rows({{-9, 30}, {}, {30, 30}});
  const Array<float> sums = embedding_lookup_sparse(t, batch, Combiner::sum);
  EXPECT_EQ(sums.values, (Floats{4, 6, 0, 0, 6, 8}));
  t.push(embedding_lookup_sparse_gradient(t, batch, Array<float>({3, 2}, {1, 1, 1, 1, 1, 1}), Combiner::sum));
  t.flush();
  EXPECT_EQ(t.lookup(Keys{-9, 30}).values, (Floats{2, 3, 6, 7}));
}

TEST_F(DynamicTableTest, ErasesKeysThatAPredicateSelects) {
  const DynamicTable<float> t("user", 2, {}, kCounting);
  Keys keys(100);
  std::iota(keys.begin(), keys.end(), 0);
  Floats values;
  for (const std::int64_t key : keys) values.insert(values.end(), 2, static_cast<float>(key % 10));
  t.assign(keys, values);
  const auto is_small = [](std::int64_t, std::span<const float> row) {
    return row[0] * row[0] + row[1] * row[1] < 9;  // 0, 1 and 2
  };
  EXPECT_EQ(t.erase_if(is_small), 30U);
  EXPECT_EQ(t.size(), 70U);
  EXPECT_THAT(t.contains(Keys{0, 1, 2, 3}), ElementsAre(0, 0, 0, 1));
}

TEST_F(DynamicTableTest, HoldsAtMostItsCapacity) {
  TableOptions options = kCounting;
  options.when_full = WhenFull::evict_least_recent;
  const DynamicTable<float> t("user", 1, {}, options);
  Keys keys(500);
  for (int round = 0; round < 20; ++round) {
    std::iota(keys.begin(), keys.end(), round * 500);
    t.push(keys, Floats(keys.size(), 1));
  }
  t.push(Keys{-1, -2, -3, -4}, Floats(4, 1));
  t.flush();
  const TableStatistics counts = t.statistics();
  EXPECT_LE(counts.keys, counts.max_keys + 500) << "plus the keys of one push";
  EXPECT_EQ(counts.evicted, counts.inserted - counts.keys);
  EXPECT_EQ(counts.refused, 0U);
  EXPECT_EQ(t.lookup(Keys{-1, -4}).values, (Floats{1, 1}));
}

TEST_F(DynamicTableTest, EvictsKeysWithoutRecentPushes) {
  TableOptions options = kCounting;
  options.evict_after = 10;
  const DynamicTable<float> t("user", 1, {}, options);
  t.insert(Keys{1, 2, 3, 4, 5, 6, 7, 8});
  for (int push = 0; push < 20; ++push) t.push(Keys{-1, -2, -3, -4}, Floats(4, 1));
  t.flush();
  EXPECT_EQ(t.lookup(Keys{-1, -4}).values, (Floats{20, 20}));
  EXPECT_EQ(t.statistics().evicted, 8U);
  EXPECT_GE(t.statistics().probes, 1);
}

TEST_F(DynamicTableTest, AddsKeysAtTheirSecondOccurrence) {
  TableOptions options = kCounting;
  options.admit_after = 2;
  const DynamicTable<float> t("user", 1, {}, options);
  t.push(Keys{1, 2}, Floats{1, 1});
  t.push(Keys{1}, Floats{1});
  t.flush();
  EXPECT_THAT(t.contains(Keys{1, 2}), ElementsAre(1, 0));
  EXPECT_EQ(t.statistics().not_admitted, 2U);
}

TEST_F(DynamicTableTest, AddsKeysWithAProbability) {
  TableOptions options = kCounting;
  options.admit_probability = 0.5;
  const DynamicTable<float> t("user", 1, {}, options);
  Keys keys(1000);
  std::iota(keys.begin(), keys.end(), 0);
  std::uint64_t absent = keys.size();
  // The standard deviation of the number of keys that a push leaves is sqrt(absent) / 2.
  for (int pushes = 0; pushes < 3; ++pushes) {
    t.push(keys, Floats(keys.size(), 1));
    t.flush();
    const std::uint64_t left = keys.size() - t.size();
    EXPECT_NEAR(static_cast<double>(left), absent / 2.0, 2.5 * std::sqrt(absent));
    absent = left;
  }
}

TEST_F(DynamicTableTest, RejectsInvalidArguments) {
  EXPECT_THAT(error_of(Code::invalid_argument, [] { DynamicTable<float>("t", 0); }),
              testing::HasSubstr("\"t\""));
  (void)error_of(Code::invalid_argument, [] { DynamicTable<float>("t", 1, {}, {.max_keys = 0}); });
  (void)error_of(Code::unimplemented, [] { DynamicTable<float>("t", 2, initializers::identity()); });
  (void)error_of(Code::invalid_argument,
                 [] { DynamicTable<float>("t", 1, {}, {.max_keys = std::uint64_t{1} << 40}); });
  (void)error_of(Code::invalid_argument, [] { DynamicTable<float>("t", 1, {}, {.admit_after = 0}); });
  (void)error_of(Code::invalid_argument, [] { DynamicTable<float>("t", 1, {}, {.admit_after = 16}); });
  for (const double probability : {0.0, -1.0, 1.5, std::nan("")}) {
    (void)error_of(Code::invalid_argument,
                   [&] { DynamicTable<float>("t", 1, {}, {.admit_probability = probability}); });
  }
  (void)error_of(Code::invalid_argument,
                 [] { DynamicTable<float>("t", 1, {}, {.admit_after = 2, .admit_probability = 0.5}); });
  (void)error_of(Code::invalid_argument,
                 [] { DynamicTable<float>("t", 1, {}, {.when_full = static_cast<WhenFull>(9)}); });
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [] { DynamicTable<float>("t", 1, {}, {.stochastic_rounding = true}); }),
              testing::AllOf(testing::HasSubstr("dynamic table \"t\""), testing::HasSubstr("float32")));
  EXPECT_THAT(error_of(Code::invalid_argument, [] { DynamicTable<float>("t", 2, {}, {.int8_rows = true}); }),
              testing::AllOf(testing::HasSubstr("\"t\""), testing::HasSubstr("int8_rows"),
                             testing::HasSubstr("2 elements")));
  (void)error_of(Code::invalid_argument, [] { DynamicTable<double>("t", 8, {}, {.int8_rows = true}); });
  const DynamicTable<float> t("t", 2, {}, kCounting);
  (void)error_of(Code::already_exists, [] { DynamicTable<float>("t", 2); });
  (void)error_of(Code::invalid_argument, [&] { t.push(Keys{1}, Floats{1}); });
  (void)error_of(Code::invalid_argument, [&] { t.assign(Keys{1}, Floats{1, 2, 3}); });
  (void)error_of(Code::invalid_argument, [] { (void)Variable<float>::find("t"); });
  EXPECT_EQ(t.size(), 0U);
}

TEST(HashKey, DependsOnTextAndSalt) {
  EXPECT_EQ(hash_key("a"), hash_key("a"));
  EXPECT_NE(hash_key("a"), hash_key("b"));
  EXPECT_NE(hash_key("a"), hash_key("a", 1));
  EXPECT_EQ(hash_key(""), 0x2d06800538d394c2);  // XXH3 of the empty text, by its specification
}

}  // namespace
}  // namespace capstan
