// route_test.cpp -- sorting the ids of a call by shard.
#include "client/route.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace capstan::client {
namespace {

using RowNumbers = std::vector<std::uint32_t>;

/// Returns the route of a variable with `rows` rows in `shards` shards (div partition).
Route route_of(std::uint64_t rows, std::uint64_t shards) {
  protocol::VariableDescriptor variable;
  variable.shape = {rows, 2};
  variable.shards.resize(shards);
  Route route(variable);
  for (std::uint32_t number = 0; number < shards; ++number) {
    ShardRoute& shard = route.shards.emplace_back();
    shard.number = number;
    shard.location.first_row = route.partition.first_row_of(number);
    shard.location.rows = route.partition.rows_of(number);
  }
  return route;
}

RowNumbers list_of(std::span<const std::uint32_t> numbers) { return {numbers.begin(), numbers.end()}; }

TEST(ByShard, SortsStablyByShard) {
  const Route route = route_of(10, 4);  // 3, 3, 2, 2 rows
  const std::vector<std::int64_t> ids{9, 0, 4, 2, 9, 3, 0};
  ByShard sorted;
  sorted.sort(route, ids);
  EXPECT_EQ(list_of(sorted.rows(0)), (RowNumbers{0, 2, 0}));
  EXPECT_EQ(list_of(sorted.rows(1)), (RowNumbers{1, 0}));
  EXPECT_EQ(list_of(sorted.rows(2)), RowNumbers{});
  EXPECT_EQ(list_of(sorted.rows(3)), (RowNumbers{1, 1}));
  EXPECT_EQ(sorted.count(0), 3U);
  EXPECT_EQ(sorted.count(2), 0U);
  EXPECT_EQ(list_of(sorted.order()), (RowNumbers{1, 3, 6, 2, 5, 0, 4}));
  EXPECT_EQ(list_of(sorted.order(0)), (RowNumbers{1, 3, 6}));
  EXPECT_EQ(list_of(sorted.order(1)), (RowNumbers{2, 5}));
  EXPECT_EQ(list_of(sorted.order(3)), (RowNumbers{0, 4}));
}

TEST(ByShard, CanBeReused) {
  ByShard sorted;
  sorted.sort(route_of(100, 7), std::vector<std::int64_t>{99, 50, 3, 99, 20});
  sorted.sort(route_of(4, 2), std::vector<std::int64_t>{3});
  EXPECT_EQ(sorted.count(0), 0U);
  EXPECT_EQ(list_of(sorted.rows(1)), RowNumbers{1});
  EXPECT_EQ(list_of(sorted.order()), RowNumbers{0});
  sorted.sort(route_of(4, 2), {});
  EXPECT_EQ(sorted.count(0) + sorted.count(1), 0U);
  EXPECT_TRUE(sorted.order().empty());
}

TEST(ByShard, RowsCorrespondToTheirIds) {
  std::mt19937 random(5);
  for (const std::uint64_t shards : {1, 2, 5, 64}) {
    const Route route = route_of(1000, shards);
    std::vector<std::int64_t> ids(3000);
    for (auto& id : ids) id = static_cast<std::int64_t>(random() % 1000);
    ByShard sorted;
    sorted.sort(route, ids);
    std::size_t all = 0;
    for (std::size_t shard = 0; shard < shards; ++shard) {
      const auto rows = sorted.rows(shard);
      const auto order = sorted.order(shard);
      ASSERT_EQ(rows.size(), order.size());
      all += rows.size();
      for (std::size_t i = 0; i < rows.size(); ++i) {
        ASSERT_LT(rows[i], route.shards[shard].location.rows);
        ASSERT_EQ(static_cast<std::int64_t>(route.shards[shard].location.first_row + rows[i]), ids[order[i]]);
        ASSERT_TRUE(i == 0 || order[i - 1] < order[i]);
      }
    }
    EXPECT_EQ(all, ids.size());
  }
}

TEST(ByShard, SupportsMoreThanFourBillionRows) {
  const std::uint64_t rows = std::uint64_t{1} << 34;
  ByShard sorted;
  sorted.sort(route_of(rows, 8),
              std::vector<std::int64_t>{static_cast<std::int64_t>(rows - 1), (std::int64_t{1} << 33) + 5});
  EXPECT_EQ(list_of(sorted.rows(7)), RowNumbers{0x7fff'ffff});
  EXPECT_EQ(list_of(sorted.rows(4)), RowNumbers{5});
}

TEST(ShardRoute, IsInHostMemoryIfItHasARegion) {
  ShardRoute shard;
  EXPECT_TRUE(shard.in_host_memory());
  shard.location.region = protocol::kNoRegion;
  EXPECT_FALSE(shard.in_host_memory());
}

}  // namespace
}  // namespace capstan::client
