// staging_buffer_test.cpp -- where gradients go in a room, and when a place is free again.
#include "client/channel/staging_buffer.hpp"

#include <gtest/gtest.h>

namespace capstan::client {
namespace {

constexpr std::uint64_t kQuarter = StagingBuffer::kPutBytes;

TEST(StagingBuffer, WithoutAKeyIsNotThere) { EXPECT_FALSE(StagingBuffer(0, {}).is_usable()); }

TEST(StagingBuffer, GivesPlacesInTurnUntilItIsFull) {
  StagingBuffer room(0, {{}, 5});
  std::uint64_t tail = 0;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto location = room.take(kQuarter, 0);
    ASSERT_TRUE(location);
    EXPECT_EQ(location->room, 5U);
    EXPECT_EQ(location->at, i * kQuarter);
    room.used_until(tail += 64);
  }
  EXPECT_FALSE(room.take(1, 0));
  EXPECT_FALSE(room.take(1, 63));
  EXPECT_EQ(room.take(1, 64)->at, 0U);
  room.used_until(tail += 64);
  EXPECT_FALSE(room.take(kQuarter, 64)) << "the beginning of the first quarter is used";
  EXPECT_EQ(room.take(kQuarter, 128)->at, 256U);
}

TEST(StagingBuffer, DoesNotGoOverItsEnd) {
  StagingBuffer room(0, {});
  ASSERT_TRUE(room.take(StagingBuffer::kBytes - 512, 0));
  room.used_until(64);
  EXPECT_FALSE(room.take(513, 0));
  EXPECT_EQ(room.take(512, 0)->at, StagingBuffer::kBytes - 512);
  room.used_until(128);
  EXPECT_FALSE(room.take(513, 0));
  EXPECT_EQ(room.take(513, 64)->at, 0U);
  room.used_until(192);
  // A place that begins anew at the beginning, when nothing is used any more.
  EXPECT_EQ(room.take(StagingBuffer::kBytes, 192)->at, 0U);
}

TEST(StagingBuffer, IsAllFreeWhenAllHasBeenApplied) {
  StagingBuffer room(0, {});
  for (std::uint64_t i = 1; i < 100; ++i) {
    ASSERT_TRUE(room.take(StagingBuffer::kBytes - i, (i - 1) * 64)) << i;
    room.used_until(i * 64);
    EXPECT_FALSE(room.take(StagingBuffer::kBytes / 2, (i - 1) * 64)) << i;
  }
}

}  // namespace
}  // namespace capstan::client
