// staging_buffers_test.cpp -- ownership of staging buffers, and validation of slots.
#include "ps/shard/staging_buffers.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "capstan/error.hpp"
#include "gpu/gpu_to_test.hpp"
#include "support/expect_error.hpp"

namespace capstan::ps {
namespace {

class StagingBuffersTest : public gpu::OnGpu {
 protected:
  static constexpr std::uint64_t kBufferBytes = 4096;
  static constexpr std::uint32_t kPusherRank = 4;
  static constexpr std::uint32_t kOtherRank = 5;

  void TearDown() override {
    buffers_ = {};
    gpu::OnGpu::TearDown();
  }
  std::uint32_t open(std::uint32_t rank, std::uint64_t bytes = kBufferBytes) {
    return buffers_.open(static_cast<int>(rank), 0, bytes).number;
  }
  std::byte* at(std::uint32_t number, std::uint64_t offset, std::uint64_t bytes,
                std::uint32_t rank = kPusherRank) const {
    return buffers_.at({number, 0, offset}, rank, bytes);
  }

  StagingBuffers buffers_;
};

TEST_F(StagingBuffersTest, MapsTheMemoryOfSlots) {
  const protocol::StagingBufferKey key = buffers_.open(kPusherRank, 0, kBufferBytes);
  const gpu::MappedMemory mapped(0, key.key);
  ASSERT_NE(mapped.data(), nullptr);
  const std::vector<std::uint32_t> written{1, 2, 3};
  const std::uint64_t bytes = written.size() * sizeof(std::uint32_t);
  gpu::copy(*stream_, mapped.data() + 64, written.data(), bytes);
  std::vector<std::uint32_t> read(written.size());
  std::byte* const slot = at(key.number, 64, bytes);
  ASSERT_NE(slot, nullptr);
  gpu::copy(*stream_, read.data(), slot, bytes);
  stream_->wait();
  EXPECT_EQ(read, written);
}

TEST_F(StagingBuffersTest, OpensAFurtherBufferPerCall) {
  const std::uint32_t first = open(kPusherRank);
  const std::uint32_t second = open(kPusherRank);
  EXPECT_NE(first, second);
  EXPECT_NE(at(first, 0, kBufferBytes), at(second, 0, kBufferBytes));
}

TEST_F(StagingBuffersTest, RejectsSlotsOutsideTheBuffer) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const std::uint32_t number = open(kPusherRank);
  EXPECT_NE(at(number, 0, kBufferBytes), nullptr);
  EXPECT_NE(at(number, kBufferBytes, 0), nullptr);
  EXPECT_NE(at(number, kBufferBytes - 1, 1), nullptr);
  EXPECT_EQ(at(number, 0, kBufferBytes + 1), nullptr);
  EXPECT_EQ(at(number, kBufferBytes, 1), nullptr);
  EXPECT_EQ(at(number, kBufferBytes + 1, 0), nullptr);
  EXPECT_EQ(at(number, kMost, 2), nullptr) << "offset + bytes would wrap around";
  EXPECT_EQ(at(number, 2, kMost), nullptr);
  EXPECT_EQ(at(number + 1, 0, 1), nullptr) << "no such buffer";
}

TEST_F(StagingBuffersTest, RejectsSlotsOfAnotherPusher) {
  const std::uint32_t number = open(kPusherRank);
  EXPECT_EQ(at(number, 0, 1, kOtherRank), nullptr);
  buffers_.release(kPusherRank);
  EXPECT_EQ(at(number, 0, 1), nullptr) << "the buffer was released";
  EXPECT_EQ(at(number, 0, 1, std::numeric_limits<std::uint32_t>::max()), nullptr) << "not a valid rank";
}

TEST_F(StagingBuffersTest, ReusesReleasedBuffersOfTheSameSize) {
  const std::uint32_t first = open(kPusherRank);
  const std::uint32_t others = open(kOtherRank);
  std::byte* const memory = at(first, 0, 1);
  buffers_.release(kPusherRank);
  EXPECT_NE(at(others, 0, 1, kOtherRank), nullptr) << "only the buffers of that rank are released";
  const std::uint32_t longer = open(kOtherRank, 2 * kBufferBytes);
  EXPECT_NE(longer, first);
  EXPECT_EQ(open(kOtherRank), first);
  EXPECT_EQ(at(first, 0, 1, kOtherRank), memory);
  EXPECT_EQ(at(first, 0, 1), nullptr);
  EXPECT_NE(open(kOtherRank), first) << "the first buffer is in use";
}

TEST_F(StagingBuffersTest, RejectsABufferThatExceedsGpuMemory) {
  (void)error_of(Code::resource_exhausted, [&] { open(kPusherRank, gpu::info(0).bytes + 1); });
  EXPECT_EQ(at(0, 0, 0), nullptr);
  EXPECT_EQ(open(kPusherRank), 0U);
}

}  // namespace
}  // namespace capstan::ps
