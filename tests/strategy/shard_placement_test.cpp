// shard_placement_test.cpp -- numbers of shards, and the ps of each.
#include "strategy/shard_placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "support/expect_error.hpp"

namespace capstan::strategy {
namespace {

std::vector<int> next(ShardPlacement& placement, const std::vector<std::uint64_t>& bytes) {
  std::vector<int> ps;
  for (const std::uint64_t shard : bytes) ps.push_back(placement.next_ps(shard));
  return ps;
}

TEST(ShardPlacement, RoundRobinIgnoresSizes) {
  ShardPlacement placement(3, {}, Placement::round_robin);
  EXPECT_EQ(next(placement, {100, 1, 1, 1}), (std::vector<int>{0, 1, 2, 0}));
  EXPECT_EQ(placement.load(0).shards, 2U);
  EXPECT_EQ(placement.load(0).bytes, 101U);
  EXPECT_EQ(placement.load(2).shards, 1U);
}

TEST(ShardPlacement, ByBytesSelectsTheFirstOfTheEmptiestPs) {
  ShardPlacement placement(3, {}, Placement::by_bytes);
  EXPECT_EQ(next(placement, {10, 4, 6, 1, 1, 1}), (std::vector<int>{0, 1, 2, 1, 1, 1}));
}

TEST(ShardPlacement, ColocationDoesNotAdvanceTheRoundRobin) {
  ShardPlacement placement(3, FixedShardsPartitioner{2}, Placement::round_robin);
  EXPECT_EQ(placement.next_ps(1), 0);
  EXPECT_EQ(placement.colocate(2), -1);
  EXPECT_EQ(placement.shard_count("v", DType::float32, {8}), 1U);
  EXPECT_EQ(next(placement, {1, 1}), (std::vector<int>{2, 2}));
  EXPECT_EQ(placement.colocate(-1), 2);
  EXPECT_EQ(placement.shard_count("v", DType::float32, {8}), 2U);
  EXPECT_EQ(placement.next_ps(1), 1);
}

TEST(ShardPlacement, RestoresAnEarlierState) {
  ShardPlacement placement(2, {}, Placement::round_robin);
  EXPECT_EQ(placement.next_ps(7), 0);
  const ShardPlacement::State before = placement.state();
  EXPECT_EQ(next(placement, {1, 1}), (std::vector<int>{1, 0}));
  placement.restore(before);
  EXPECT_EQ(placement.load(0).bytes, 7U);
  EXPECT_EQ(placement.load(1).shards, 0U);
  EXPECT_EQ(placement.next_ps(1), 1);
}

TEST(ShardPlacement, HasNoMoreShardsThanRowsAndOneForAScalar) {
  const ShardPlacement placement(
      4, [](auto, DType) { return 4; }, Placement::round_robin);
  EXPECT_EQ(placement.shard_count("v", DType::float32, {3, 5}), 3U);
  EXPECT_EQ(placement.shard_count("v", DType::float32, {9}), 4U);
  EXPECT_EQ(placement.shard_count("v", DType::float32, {}), 1U);
}

TEST(ShardPlacement, RejectsShardsOfAnEmptyVariable) {
  const ShardPlacement placement(
      2, [](auto, DType) { return 2; }, Placement::round_robin);
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [&] {
                         (void)placement.shard_count("empty", DType::float32, {0, 3});
                       }),
              testing::HasSubstr("\"empty\""));
}

}  // namespace
}  // namespace capstan::strategy
