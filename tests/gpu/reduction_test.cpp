// reduction_test.cpp -- block reductions on the host: exact and reproducible results.
// Tests: src/gpu/both.hpp
#include "gpu/reduction.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "gpu/blocks.cuh"

namespace capstan::gpu {
namespace {

struct LargestBody {
  static constexpr std::uint32_t kThreads = 64;
  struct Shared {
    Reduction<float, kThreads> reduction;
  };
  struct ThreadState {
    float value;
  };
  const float* values;  // kThreads for each block
  float* largest;       // one for each block

  template <class B>
  CAPSTAN_BOTH void operator()(const B& block, std::uint32_t number) const {
    block.each([&](std::uint32_t thread, ThreadState& mine, Shared&) {
      mine.value = values[number * kThreads + thread];
    });
    Reduction<float, kThreads>::run<Larger, ThreadState, Shared>(block, &ThreadState::value);
    block.each([&](std::uint32_t thread, ThreadState& mine, Shared&) {
      if (thread == 0) largest[number] = mine.value;
    });
  }
};

TEST(BlockReduction, FindsLargestValueOfEachBlock) {
  constexpr std::uint32_t kBlocks = 5;
  std::vector<float> values(std::size_t{kBlocks} * LargestBody::kThreads);
  std::mt19937 random(5);
  std::uniform_real_distribution<float> below_zero(-2, -1);
  for (float& value : values) value = below_zero(random);
  for (std::uint32_t block = 0; block < kBlocks; ++block) {
    values[std::size_t{block} * LargestBody::kThreads + 13 * block] = -0.5F + static_cast<float>(block);
  }
  std::vector<float> largest(kBlocks);
  each_block_here(LargestBody{values.data(), largest.data()}, kBlocks);
  EXPECT_EQ(largest, (std::vector<float>{-0.5F, 0.5F, 1.5F, 2.5F, 3.5F}));
}

TEST(BlockReduction, SumAddsToTheTotal) {
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), 1.0F);
  double total = 0.25;
  each_block_here(SumBody{values.data(), 1000, &total}, 1);
  EXPECT_EQ(total, 500'500.25);
}

TEST(BlockReduction, SumIsReproducible) {
  std::vector<float> values(777);
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(random);
  double first = 0;
  double second = 0;
  each_block_here(SumBody{values.data(), 777, &first}, 1);
  each_block_here(SumBody{values.data(), 777, &second}, 1);
  EXPECT_EQ(first, second);
  EXPECT_NEAR(first, std::accumulate(values.begin(), values.end(), 0.0), 1e-9);
}

TEST(Atomics, MinimumMaximumAndSum) {
  std::uint32_t value = 5;
  atomic_max(&value, 3);
  EXPECT_EQ(value, 5U);
  atomic_max(&value, 9);
  EXPECT_EQ(value, 9U);
  atomic_min(&value, 4);
  EXPECT_EQ(value, 4U);
  atomic_add(&value, 6U);
  EXPECT_EQ(value, 10U);
}

TEST(Atomics, SignedSumWrapsAround) {
  std::int64_t value = std::numeric_limits<std::int64_t>::max();
  atomic_add(&value, std::int64_t{1});
  EXPECT_EQ(value, std::numeric_limits<std::int64_t>::min());
}

}  // namespace
}  // namespace capstan::gpu
