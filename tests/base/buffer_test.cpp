// buffer_test.cpp -- the memory of a large Buffer is that of a destroyed one; conversions and comparisons.
#include "capstan/buffer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/kept_buffers.hpp"

namespace capstan {
namespace {

using testing::ElementsAre;

constexpr std::size_t kLarge = std::size_t{1} << 20;

TEST(Buffer, LargeBufferUsesTheMemoryOfADestroyedOne) {
  const float* first = nullptr;
  {
    const Buffer<float> buffer(kLarge);
    first = buffer.data();
  }
  const Buffer<float> again(kLarge - 1000);  // about the same size
  EXPECT_EQ(again.data(), first);
  const Buffer<float> other(kLarge);
  EXPECT_NE(other.data(), first) << "its memory has a buffer";
}

TEST(Buffer, BuffersOfOtherSizesDoNotShareMemory) {
  const float* first = nullptr;
  {
    const Buffer<float> small(kLarge / 8);
    first = small.data();
  }
  Buffer<float> large(kLarge);
  EXPECT_NE(large.data(), first) << "the memory of a smaller one";
  std::fill(large.begin(), large.end(), 2.0F);
  Buffer<float> small(kLarge / 8);
  std::fill(small.begin(), small.end(), 1.0F);
  EXPECT_EQ(std::count(large.begin(), large.end(), 2.0F), static_cast<std::ptrdiff_t>(large.size()));
}

TEST(Buffer, ThreadsNeverShareABuffer) {
  std::vector<std::jthread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread] {
      for (std::uint64_t i = 0; i < 200; ++i) {
        Buffer<std::uint64_t> buffer((std::size_t{8} << 10) << (i % 3));
        std::fill(buffer.begin(), buffer.end(), thread);
        ASSERT_EQ(std::count(buffer.begin(), buffer.end(), thread),
                  static_cast<std::ptrdiff_t>(buffer.size()));
      }
    });
  }
}

TEST(Buffer, KeepsALimitedAmountOfMemory) {
  {
    std::vector<Buffer<std::byte>> buffers;
    for (int i = 0; i < 8; ++i) buffers.emplace_back(std::size_t{64} << 20);
    buffers.emplace_back(kMostKeptBytes + 1);
  }
  EXPECT_EQ(kept_buffer_bytes(), kMostKeptBytes) << "four of the first eight";
  { const std::vector<Buffer<std::byte>> buffers(200, Buffer<std::byte>(std::size_t{64} << 10)); }
  EXPECT_LE(kept_buffer_bytes(), std::size_t{64} << 20) << "the larger ones were older";
  EXPECT_GT(kept_buffer_bytes(), 0U);
}

TEST(Buffer, ThrowsForSizesThatNoMemoryHas) {
  EXPECT_THROW(Buffer<std::byte>(std::size_t{1} << 63), std::bad_alloc);
  EXPECT_THROW(Buffer<double>(std::size_t{1} << 61), std::bad_alloc);
  EXPECT_THROW((void)Buffer<int>(3).at(3), std::out_of_range);
}

TEST(Buffer, ConvertsToVectorAndSpan) {
  const Buffer<float> buffer(std::vector<float>{1, 2, 3});
  const std::vector<float> copy = buffer;
  const std::span<const float> view = buffer;
  EXPECT_THAT(copy, ElementsAre(1, 2, 3));
  EXPECT_EQ(view.data(), buffer.data());
  EXPECT_EQ(buffer, copy);
  EXPECT_EQ(copy, buffer);
  EXPECT_NE(buffer, (std::vector<float>{1, 2}));
  EXPECT_EQ(buffer.front(), 1);
  EXPECT_EQ(buffer.back(), 3);
}

TEST(Buffer, CopiesAndMoves) {
  Buffer<int> buffer(std::vector<int>{1, 2});
  const Buffer<int> copy = buffer;
  buffer[0] = 7;
  EXPECT_THAT(copy, ElementsAre(1, 2));
  const int* const data = buffer.data();
  const Buffer<int> moved = std::move(buffer);
  EXPECT_EQ(moved.data(), data);
  EXPECT_TRUE(buffer.empty());  // NOLINT(bugprone-use-after-move)
  buffer = copy;
  EXPECT_EQ(buffer, copy);
  EXPECT_TRUE(Buffer<int>().empty());
  EXPECT_TRUE(Buffer<int>(0).empty());
}

TEST(Buffer, IsSerializedLikeAVector) {
  const std::vector<double> values{1, 2, 3};
  const Buffer<double> buffer(values);
  EXPECT_EQ(to_bytes(buffer), to_bytes(values));
  EXPECT_EQ(from_bytes<Buffer<double>>(to_bytes(values)), values);
  std::vector<std::byte> bytes = to_bytes(buffer);
  bytes.pop_back();
  EXPECT_THROW(from_bytes<Buffer<double>>(bytes), Error);
}

}  // namespace
}  // namespace capstan
