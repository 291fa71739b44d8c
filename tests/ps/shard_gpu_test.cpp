// shard_gpu_test.cpp -- order of work on a ps's GPU, and memory of its transfers.
#include "ps/shard/shard_gpu.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "capstan/error.hpp"
#include "gpu/gpu_to_test.hpp"
#include "support/expect_error.hpp"

namespace capstan::ps {
namespace {

class ShardGpuTest : public gpu::OnGpu {
 protected:
  void SetUp() override {
    gpu::OnGpu::SetUp();
    gpu_.emplace(0, false);
  }
  void TearDown() override {
    gpu_.reset();
    gpu::OnGpu::TearDown();
  }

  std::optional<ShardGpu> gpu_;
};

TEST_F(ShardGpuTest, HasNoBadRowInitially) {
  std::uint32_t first_bad = 0;
  gpu::copy(gpu_->stream(), &first_bad, gpu_->first_bad(), sizeof first_bad);
  gpu_->settle();
  EXPECT_EQ(first_bad, 0xFFFFFFFFU);
  EXPECT_EQ(gpu_->number(), 0);
  EXPECT_FALSE(gpu_->deterministic());
  EXPECT_TRUE(ShardGpu(0, true).deterministic());
}

TEST_F(ShardGpuTest, LaunchesCollectedWorkOnceBeforeOtherWork) {
  std::string order;
  gpu_->collect([&] { order += 'a'; });
  EXPECT_EQ(order, "");
  gpu_->collect([&] { order += 'b'; });
  EXPECT_EQ(order, "a");
  (void)gpu_->stream();
  EXPECT_EQ(order, "ab");
  gpu_->collect([&] { order += 'c'; });
  (void)gpu_->stage(1);
  EXPECT_EQ(order, "abc");
  gpu_->collect([&] { order += 'd'; });
  gpu_->settle();
  EXPECT_EQ(order, "abcd");
  gpu_->launch_collected();
  (void)gpu_->stream();
  EXPECT_EQ(order, "abcd");
}

TEST_F(ShardGpuTest, LaunchesCollectedWorkThatUsesTheStream) {
  int launched = 0;
  gpu_->collect([&] {
    (void)gpu_->stream();  // as updates do; must not launch the work again
    ++launched;
  });
  gpu_->settle();
  EXPECT_EQ(launched, 1);
}

TEST_F(ShardGpuTest, StagesAlignedConsecutiveMemory) {
  const ShardGpu::Staging first = gpu_->stage(1);
  const ShardGpu::Staging second = gpu_->stage(257);
  const ShardGpu::Staging third = gpu_->stage(4);
  EXPECT_EQ(second.host - first.host, 256);
  EXPECT_EQ(third.host - second.host, 512);
  EXPECT_EQ(second.device - first.device, 256) << "the offset must be the same in both buffers";
  EXPECT_EQ(third.device - second.device, 512);
  EXPECT_EQ(ShardGpu::bytes_of_numbers(0), 0U);
  EXPECT_EQ(ShardGpu::bytes_of_numbers(1), 256U);
  EXPECT_EQ(ShardGpu::bytes_of_numbers(65), 512U);
}

TEST_F(ShardGpuTest, ReusesReturnedMemory) {
  const ShardGpu::Staging first = gpu_->stage(1024);
  gpu_->return_unused(600);  // rounded down to 512, a multiple of the alignment
  EXPECT_EQ(gpu_->stage(1).host - first.host, 512);
}

TEST_F(ShardGpuTest, StagesFromTheBeginningAfterSettling) {
  const ShardGpu::Staging first = gpu_->stage(1024);
  gpu_->settle();
  EXPECT_EQ(gpu_->stage(1024).host, first.host);
}

TEST_F(ShardGpuTest, PreservesMemoryOfTransfersInFlight) {
  // Each transfer fills one half, so every other transfer uses the same memory.
  constexpr std::uint64_t kHalf = ShardGpu::kPieceBytes;
  constexpr int kTransfers = 5;
  const gpu::Memory target(0, kTransfers * sizeof(int));
  std::vector<std::byte*> used;
  for (int i = 0; i < kTransfers; ++i) {
    const ShardGpu::Staging staging = gpu_->stage(kHalf);
    used.push_back(staging.host);
    std::memcpy(staging.host, &i, sizeof i);
    gpu::copy(gpu_->stream(), staging.device, staging.host, sizeof i);
    gpu::copy(gpu_->stream(), target.data() + static_cast<std::size_t>(i) * sizeof i, staging.device,
              sizeof i);
  }
  std::vector<int> found(kTransfers);
  gpu::copy(gpu_->stream(), found.data(), target.data(), found.size() * sizeof(int));
  gpu_->settle();
  std::vector<int> expected(kTransfers);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(found, expected);
  EXPECT_NE(used[0], used[1]);
  EXPECT_EQ(used[0], used[2]);
  EXPECT_EQ(used[1], used[3]);
}

TEST_F(ShardGpuTest, FinishesTransfersBeforeItsMemoryGrows) {
  const gpu::Memory target(0, sizeof(int));
  const int number = 7;
  const ShardGpu::Staging small = gpu_->stage(sizeof number);
  std::memcpy(small.host, &number, sizeof number);
  gpu::copy(gpu_->stream(), target.data(), small.host, sizeof number);
  (void)gpu_->stage(3 * ShardGpu::kPieceBytes);
  int found = 0;
  gpu::copy(gpu_->stream(), &found, target.data(), sizeof found);
  gpu_->settle();
  EXPECT_EQ(found, number);
}

TEST_F(ShardGpuTest, KeepsItsMemoryIfItCannotGrow) {
  if (!gpu::are_stand_ins()) GTEST_SKIP() << "it would take all memory of a GPU";
  gpu_.reset();
  stream_.reset();
  gpu::use_stand_ins(1, std::uint64_t{32} << 20);
  gpu_.emplace(0, false);
  const ShardGpu::Staging before = gpu_->stage(1024);
  bool launched = false;
  gpu_->collect([&] { launched = true; });
  (void)error_of(Code::resource_exhausted, [&] { gpu_->reserve(std::uint64_t{64} << 20); });
  EXPECT_FALSE(launched) << "a failed reservation must change nothing";
  EXPECT_EQ(gpu_->stage(1).host - before.host, 1024);
  gpu_->reserve(ShardGpu::kPieceBytes);
  EXPECT_EQ(gpu_->stage(1).host - before.host, 1280) << "the existing buffer is large enough";
}

}  // namespace
}  // namespace capstan::ps
