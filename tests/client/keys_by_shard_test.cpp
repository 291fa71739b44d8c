// keys_by_shard_test.cpp -- keys sorted by shard.
#include "client/keys_by_shard.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

#include "protocol/table_layout.hpp"

namespace capstan::client {
namespace {

TEST(KeysByShard, ReturnsTheKeysOfTheCallForOneShard) {
  const std::vector<std::int64_t> keys{5, -1, 5};
  KeysByShard sorted;
  sorted.sort(1, keys);
  EXPECT_EQ(sorted.keys(0).data(), keys.data());
  EXPECT_EQ(sorted.keys(0).size(), 3U);
  EXPECT_TRUE(sorted.order(0).empty());
}

TEST(KeysByShard, IsStableAndFindsThePositionOfEachKey) {
  std::vector<std::int64_t> keys(1000);
  std::iota(keys.begin(), keys.end(), std::numeric_limits<std::int64_t>::min());
  keys.insert(keys.end(), {7, 7, 0, 7});
  KeysByShard sorted;
  for (const std::size_t shards : {3U, 2U, 7U}) {
    sorted.sort(shards, keys);
    std::vector<bool> seen(keys.size());
    for (std::size_t s = 0; s < shards; ++s) {
      ASSERT_EQ(sorted.keys(s).size(), sorted.order(s).size());
      EXPECT_GT(sorted.keys(s).size(), 1000 / shards / 2) << "hashes are spread";
      EXPECT_TRUE(std::is_sorted(sorted.order(s).begin(), sorted.order(s).end()));
      for (std::size_t i = 0; i < sorted.keys(s).size(); ++i) {
        const std::uint32_t position = sorted.order(s)[i];
        EXPECT_EQ(sorted.keys(s)[i], keys.at(position));
        EXPECT_EQ(protocol::shard_of_hash(protocol::hash_of(keys[position]), shards), s);
        seen[position] = true;
      }
    }
    EXPECT_THAT(seen, testing::Each(true));
  }
}

TEST(KeysByShard, AcceptsNoKeys) {
  KeysByShard sorted;
  sorted.sort(2, {});
  EXPECT_TRUE(sorted.keys(0).empty());
  EXPECT_TRUE(sorted.keys(1).empty());
}

}  // namespace
}  // namespace capstan::client
