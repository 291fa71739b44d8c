// hot_rows_test.cpp -- rows cached on a GPU or in main memory: their values, age limit, and choice.
// Tests: src/strategy/hot_rows_on_host.cpp
#include "capstan/hot_rows.hpp"

#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>

#include "capstan/capstan.hpp"
#include "strategy/hot_row_index.hpp"
#include "tests/support/gpu_flags.hpp"
#include "tests/support/rank_threads.hpp"

namespace capstan {
namespace {

using Ids = std::vector<std::int64_t>;

TEST(HotRowIndex, ReadsMissingAndExpiredRows) {
  strategy::HotRowIndex index({.rows = 4, .staleness = 2});
  EXPECT_EQ(index.plan(Ids{5, 6, 5}).to_read, (Ids{5, 6}));
  EXPECT_EQ(index.plan(Ids{5}).to_read, Ids{});
  EXPECT_EQ(index.plan(Ids{6}).to_read, Ids{}) << "two lookups old";
  EXPECT_EQ(index.plan(Ids{6, 7}).to_read, (Ids{6, 7})) << "three lookups old";
  index.evict(Ids{7, 99});
  EXPECT_EQ(index.plan(Ids{7, 6}).to_read, Ids{7});
  EXPECT_EQ(index.statistics().hits, 3U);
  EXPECT_EQ(index.statistics().misses, 4U);
  EXPECT_EQ(index.statistics().stale, 1U);
}

TEST(HotRowIndex, KeepsRepeatedRows) {
  strategy::HotRowIndex index({.rows = 4, .staleness = 1000});
  std::int64_t cold = 100;
  (void)index.plan(Ids{1, 2});
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(index.plan(Ids{1, 2}).to_read, Ids{}) << i;
    (void)index.plan(Ids{cold, cold + 1});
    cold += 2;
  }
}

TEST(HotRowIndex, AssignsExtraSlotsToRowsThatDoNotFit) {
  strategy::HotRowIndex index({.rows = 2, .staleness = 10});
  for (int i = 0; i < 3; ++i) {
    const auto& plan = index.plan(Ids{1, 2, 3, 4, 3});
    EXPECT_EQ(plan.rows, 4U);
    std::map<std::uint32_t, std::int64_t> id_at;
    for (std::size_t j = 0; j < 5; ++j) {
      const std::int64_t id = Ids{1, 2, 3, 4, 3}[j];
      EXPECT_EQ(id_at.emplace(plan.slots[j], id).first->second, id) << "two rows in one slot";
    }
  }
  EXPECT_EQ(index.plan(Ids{1}).rows, 2U);
  EXPECT_THROW(strategy::HotRowIndex({.rows = 0}), Error);
}

/// Compares with a plain table whose rows change: a returned row is at most `staleness` lookups old.
TEST(HotRowIndex, RespectsTheMaximumAge) {
  for (const std::uint64_t staleness : {0, 1, 7}) {
    strategy::HotRowIndex index({.rows = 16, .staleness = staleness});
    std::map<std::uint32_t, std::pair<std::int64_t, std::uint64_t>> cache;  // by slot: id, time of the read
    std::mt19937 random(1);
    for (std::uint64_t now = 1; now < 3000; ++now) {
      Ids ids(1 + random() % 24);
      for (auto& id : ids) id = static_cast<std::int64_t>(random() % (random() % 2 == 0 ? 6 : 200));
      const auto& plan = index.plan(ids);
      for (std::size_t i = 0; i < plan.to_read.size(); ++i)
        cache[plan.read_slots[i]] = {plan.to_read[i], now};
      for (std::size_t i = 0; i < ids.size(); ++i) {
        ASSERT_LT(plan.slots[i], plan.rows);
        const auto& [id, read_at] = cache.at(plan.slots[i]);
        ASSERT_EQ(id, ids[i]);
        ASSERT_LE(now - read_at, staleness);
      }
      if (now % 10 == 0) index.evict(ids);
    }
  }
}

constexpr std::int64_t kHotTableRows = 300, kHotTableWidth = 5;

/// A variable whose element i is i.
Variable<float> numbered_table() {
  const Variable<float> table("table", Shape{kHotTableRows, kHotTableWidth});
  std::vector<float> values(kHotTableRows * kHotTableWidth);
  std::iota(values.begin(), values.end(), 0.0F);
  return table.assign(values);
}

TEST(HotRowsOnHost, ReturnTheRowsOfTheVariable) {
  const RankThreads ranks({.ranks = 4, .flags = {{"ps", "2"}, {"window", "am"}}});
  ParameterServerStrategy strategy(ranks.cluster(), {FixedShardsPartitioner{2}});
  const auto scope = strategy.scope();
  const Variable<float> table = numbered_table();

  HotRowsOnHost<float> hot(table, {.rows = 20, .staleness = 3});
  std::mt19937 random(3);
  for (int i = 0; i < 60; ++i) {
    Ids ids(random() % 40);
    for (auto& id : ids) id = static_cast<std::int64_t>(random() % (random() % 4 == 0 ? kHotTableRows : 10));
    ASSERT_EQ(hot.lookup(ids).values, table.lookup(ids).values) << i;
  }
  EXPECT_GT(hot.statistics().hits, 100U);
  EXPECT_EQ(hot.lookup({}).size(), 0U);

  EXPECT_EQ(hot.lookup({7})[0][0], 35);
  table.assign(std::vector<float>(kHotTableWidth, -1), 7);
  for (int lookups = 1; hot.lookup({7})[0][0] != -1; ++lookups) ASSERT_LE(lookups, 3);
  table.assign(std::vector<float>(kHotTableWidth, -2), 7);
  EXPECT_EQ(hot.lookup({7})[0][0], -1) << "one lookup old";
  hot.evict({7});
  EXPECT_EQ(hot.lookup({7})[0][0], -2);

  // A failed read leaves no rows in the cache.
  EXPECT_THROW((void)hot.lookup({250, kHotTableRows}), Error);
  EXPECT_EQ(hot.lookup({250, 251}).values, table.lookup({250, 251}).values);
  std::vector<float> two(2 * kHotTableWidth);
  EXPECT_THROW(hot.lookup({1}, two), Error);
  EXPECT_THROW(HotRowsOnHost<float>(table, {.rows = 0}), Error);
}

TEST(HotRows, ReturnTheRowsOfTheVariable) {
  {
    auto flags = gpu_flags();
    flags.emplace_back("ps", "2");
    const RankThreads ranks({.ranks = 4, .flags = flags});
    ParameterServerStrategy strategy(ranks.cluster(), {FixedShardsPartitioner{2}});
    const auto scope = strategy.scope();
    const Variable<float> table = numbered_table();

    DeviceStream stream(0), other(0);
    HotRows<float> hot(table, 0, {.rows = 20, .staleness = 3});
    std::mt19937 random(3);
    for (int i = 0; i < 60; ++i) {
      Ids ids(random() % 40);
      for (auto& id : ids)
        id = static_cast<std::int64_t>(random() % (random() % 4 == 0 ? kHotTableRows : 10));
      const DeviceArray<float> out(0, ids.size() * kHotTableWidth);
      const DeviceStream& by = i % 3 == 0 ? other : stream;
      hot.lookup(by, ids, out.span());
      ASSERT_EQ(to_host(by, out.span()), table.lookup(ids).values) << i;
    }
    EXPECT_GT(hot.statistics().hits, 100U);

    const Ids one{7};
    const DeviceArray<float> out(0, kHotTableWidth);
    hot.lookup(stream, one, out.span());
    table.assign(std::vector<float>(kHotTableWidth, -1), 7);
    for (int lookups = 1;; ++lookups) {
      hot.lookup(stream, one, out.span());
      if (to_host(stream, out.span())[0] == -1) break;
      ASSERT_LE(lookups, 3);
    }
    table.assign(std::vector<float>(kHotTableWidth, -2), 7);
    hot.evict(one);
    hot.lookup(stream, one, out.span());
    EXPECT_EQ(to_host(stream, out.span()), std::vector<float>(kHotTableWidth, -2));

    // A failed read leaves no rows in the cache.
    const DeviceArray<float> two(0, 2 * kHotTableWidth);
    EXPECT_THROW(hot.lookup(stream, Ids{250, kHotTableRows}, two.span()), Error);
    hot.lookup(stream, Ids{250, 251}, two.span());
    EXPECT_EQ(to_host(stream, two.span()), table.lookup(Ids{250, 251}).values);
    EXPECT_THROW(hot.lookup(stream, Ids{1}, two.span()), Error);
    EXPECT_THROW(HotRows<float>(table, device_count()), Error);
  }
  forget_stand_ins();
}

}  // namespace
}  // namespace capstan
