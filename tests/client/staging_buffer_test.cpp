// staging_buffer_test.cpp -- allocation and release of slots in a staging buffer.
#include "client/channel/staging_buffer.hpp"

#include <gtest/gtest.h>

namespace capstan::client {
namespace {

constexpr std::uint64_t kQuarter = StagingBuffer::kPutBytes;

TEST(StagingBuffer, IsUnusableWithoutAKey) { EXPECT_FALSE(StagingBuffer(0, {}).is_usable()); }

TEST(StagingBuffer, AllocatesConsecutiveSlotsUntilItIsFull) {
  StagingBuffer buffer(0, {{}, 5});
  std::uint64_t tail = 0;
  for (std::uint64_t i = 0; i < 4; ++i) {
    const auto slot = buffer.take(kQuarter, 0);
    ASSERT_TRUE(slot);
    EXPECT_EQ(slot->number, 5U);
    EXPECT_EQ(slot->at, i * kQuarter);
    buffer.used_until(tail += 64);
  }
  EXPECT_FALSE(buffer.take(1, 0));
  EXPECT_FALSE(buffer.take(1, 63));
  EXPECT_EQ(buffer.take(1, 64)->at, 0U);
  buffer.used_until(tail += 64);
  EXPECT_FALSE(buffer.take(kQuarter, 64)) << "the start of the first quarter is in use";
  EXPECT_EQ(buffer.take(kQuarter, 128)->at, 256U);
}

TEST(StagingBuffer, SlotsDoNotWrapAround) {
  StagingBuffer buffer(0, {});
  ASSERT_TRUE(buffer.take(StagingBuffer::kBytes - 512, 0));
  buffer.used_until(64);
  EXPECT_FALSE(buffer.take(513, 0));
  EXPECT_EQ(buffer.take(512, 0)->at, StagingBuffer::kBytes - 512);
  buffer.used_until(128);
  EXPECT_FALSE(buffer.take(513, 0));
  EXPECT_EQ(buffer.take(513, 64)->at, 0U);
  buffer.used_until(192);
  // An empty buffer allocates from the start again.
  EXPECT_EQ(buffer.take(StagingBuffer::kBytes, 192)->at, 0U);
}

TEST(StagingBuffer, IsFreeOnceAllEntriesAreApplied) {
  StagingBuffer buffer(0, {});
  for (std::uint64_t i = 1; i < 100; ++i) {
    ASSERT_TRUE(buffer.take(StagingBuffer::kBytes - i, (i - 1) * 64)) << i;
    buffer.used_until(i * 64);
    EXPECT_FALSE(buffer.take(StagingBuffer::kBytes / 2, (i - 1) * 64)) << i;
  }
}

}  // namespace
}  // namespace capstan::client
