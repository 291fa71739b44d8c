// push_format_test.cpp -- sizes of entries, and the cache lines of the board.
#include "protocol/push_format.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <type_traits>

namespace capstan::protocol {
namespace {

// Processes exchange these headers, so their layout is part of the format.
static_assert(std::is_trivially_copyable_v<PushHeader> && std::is_standard_layout_v<PushHeader>);
static_assert(offsetof(PushHeader, kind) == 0 && offsetof(PushHeader, variable) == 4);
static_assert(offsetof(PushHeader, shard) == 8 && offsetof(PushHeader, rows) == 12);
static_assert(offsetof(PushHeader, bytes) == 16 && offsetof(PushHeader, first_row) == 24);
static_assert(offsetof(PushHeader, closure) == 32 && offsetof(PushHeader, call) == 40);
static_assert(offsetof(PushHeader, replica) == 58 && offsetof(PushHeader, part) == 60);
static_assert(offsetof(PushHeader, op) == 48 && offsetof(PushHeader, first_part) == 52);
static_assert(offsetof(PushHeader, bfloat16_values) == 57);
static_assert(static_cast<int>(PushKind::padding) == 1 && static_cast<int>(PushKind::sparse) == 2 &&
              static_cast<int>(PushKind::dense) == 3);

TEST(PushFormat, SizesAreRoundedUpToCacheLines) {
  EXPECT_EQ(round_up(0), 0U);
  EXPECT_EQ(round_up(1), 64U);
  EXPECT_EQ(round_up(64), 64U);
  EXPECT_EQ(round_up(65), 128U);
}

TEST(PushFormat, EntryBytesCountHeaderNumbersAndValues) {
  EXPECT_EQ(entry_bytes(PushKind::sparse, 0, 256), 64U);
  EXPECT_EQ(entry_bytes(PushKind::sparse, 1, 4), 64U + 64 + 64);
  EXPECT_EQ(entry_bytes(PushKind::sparse, 16, 256), 64U + 64 + 4096);
  EXPECT_EQ(entry_bytes(PushKind::sparse, 17, 256), 64U + 128 + 4352);
  EXPECT_EQ(entry_bytes(PushKind::dense, 3, 20), 64U + 64);
  EXPECT_EQ(entry_bytes(PushKind::dense, 4, 20), 64U + 128);
  // The computation does not overflow 32 bits.
  EXPECT_EQ(entry_bytes(PushKind::sparse, 0xffffffffU, 8),
            64U + (std::uint64_t{1} << 34) + (std::uint64_t{1} << 35));
}

TEST(PushFormat, EveryWordOfTheBoardHasItsOwnCacheLine) {
  for (const std::uint64_t ranks : {1, 3, 64, 1000}) {
    const BoardLayout layout(ranks);
    std::set<std::uint64_t> locations{layout.asleep(), layout.liveness_word()};
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      locations.insert(layout.tail(rank));
      locations.insert(layout.applied(rank));
    }
    for (std::uint64_t i = 0; i < BoardLayout::kCounters; ++i) locations.insert(layout.counter(i));
    for (std::uint64_t id = 1; id <= BoardLayout::kGroups; ++id) locations.insert(layout.group(id));
    EXPECT_EQ(locations.size(), 2 + 2 * ranks + BoardLayout::kCounters + BoardLayout::kGroups);
    for (const std::uint64_t location : locations) EXPECT_EQ(location % kCacheLine, 0U);
    EXPECT_EQ(*locations.rbegin() + kCacheLine, layout.bytes());
    if (ranks > 1) {
      // The ps polls the tails, so they are adjacent.
      EXPECT_EQ(layout.tail(1) - layout.tail(0), kCacheLine);
    }
  }
}

}  // namespace
}  // namespace capstan::protocol
