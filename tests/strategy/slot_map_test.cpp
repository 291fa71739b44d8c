// slot_map_test.cpp -- compares the map from ids to slots with std::unordered_map.
#include "strategy/slot_map.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <unordered_map>
#include <vector>

namespace capstan::strategy {
namespace {

TEST(SlotMap, FindsInsertedIds) {
  SlotMap map(4);
  EXPECT_EQ(map.find(0), SlotMap::kNone);
  EXPECT_FALSE(map.erase(0));
  map.insert(0, 7);
  map.insert(-1, 8);
  map.insert(std::numeric_limits<std::int64_t>::max(), 0);
  map.insert(std::numeric_limits<std::int64_t>::min(), 9);
  EXPECT_EQ(map.find(std::numeric_limits<std::int64_t>::min()), 9U);
  EXPECT_TRUE(map.erase(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(map.find(0), 7U);
  EXPECT_EQ(map.find(-1), 8U);
  EXPECT_EQ(map.find(std::numeric_limits<std::int64_t>::max()), 0U);
  EXPECT_EQ(map.size(), 3U);
  EXPECT_TRUE(map.erase(0));
  EXPECT_EQ(map.find(0), SlotMap::kNone);
  EXPECT_FALSE(map.erase(0));
  EXPECT_EQ(map.size(), 2U);
}

/// Inserts, finds and erases random ids. Small maps have long runs of entries that wrap around the end; maps
/// with more ids than reserved grow.
TEST(SlotMap, MatchesUnorderedMap) {
  std::mt19937_64 random(1);
  for (const std::size_t reserved : {1, 3, 8, 100, 1000}) {
    for (const std::uint64_t most : {reserved, 4 * reserved}) {
      SlotMap map(reserved);
      std::unordered_map<std::int64_t, std::uint32_t> model;
      const std::uint64_t ids = 2 * most + 1;
      for (std::uint32_t i = 0; i < 30'000; ++i) {
        const auto id = static_cast<std::int64_t>(random() % ids);
        const auto known = model.find(id);
        ASSERT_EQ(map.find(id), known == model.end() ? SlotMap::kNone : known->second) << id;
        if (known != model.end()) {
          if (random() % 2 == 0) continue;
          ASSERT_TRUE(map.erase(id));
          model.erase(known);
        } else if (model.size() < most) {
          map.insert(id, i);
          model.emplace(id, i);
        } else {
          ASSERT_FALSE(map.erase(id));
        }
        ASSERT_EQ(map.size(), model.size());
      }
      for (std::uint64_t id = 0; id < ids; ++id) {
        const auto known = model.find(static_cast<std::int64_t>(id));
        ASSERT_EQ(map.find(static_cast<std::int64_t>(id)),
                  known == model.end() ? SlotMap::kNone : known->second)
            << id;
      }
    }
  }
}

}  // namespace
}  // namespace capstan::strategy
