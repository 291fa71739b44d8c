// aligned_test.cpp -- alignment of buffers to cache lines and huge pages, and their reallocation.
#include "train/kge/aligned.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace capstan::kge {
namespace {

std::uintptr_t address_of(const AlignedFloats& floats) {
  return reinterpret_cast<std::uintptr_t>(floats.data());
}

TEST(AlignedFloats, IsInitiallyEmpty) {
  const AlignedFloats floats;
  EXPECT_EQ(floats.size(), 0U);
  EXPECT_TRUE(floats.span().empty());
}

TEST(AlignedFloats, AlignsToCacheLineOrHugePage) {
  constexpr std::size_t kHugePageFloats = (std::size_t{2} << 20) / sizeof(float);
  for (const std::size_t size : {std::size_t{1}, std::size_t{15}, std::size_t{17}, kHugePageFloats - 1}) {
    AlignedFloats floats;
    floats.resize(size);
    EXPECT_EQ(address_of(floats) % 64, 0U) << size;
  }
  for (const std::size_t size : {kHugePageFloats, kHugePageFloats + 1}) {
    AlignedFloats floats;
    floats.resize(size);
    EXPECT_EQ(address_of(floats) % (std::size_t{2} << 20), 0U) << size;
  }
}

TEST(AlignedFloats, AllElementsAreWritable) {
  AlignedFloats floats;
  for (const std::size_t size : {3, 100, 600'000}) {
    floats.resize(size);
    EXPECT_EQ(floats.size(), size);
    ASSERT_EQ(floats.span().size(), size);
    EXPECT_EQ(floats.span().data(), floats.data());
    std::fill(floats.span().begin(), floats.span().end(), 2.F);
    EXPECT_EQ(std::count(floats.span().begin(), floats.span().end(), 2.F), static_cast<std::ptrdiff_t>(size));
  }
}

TEST(AlignedFloats, AllocatesOnlyToGrow) {
  AlignedFloats floats;
  floats.resize(100);
  const float* const first = floats.data();
  floats.resize(10);
  EXPECT_EQ(floats.size(), 10U);
  EXPECT_EQ(floats.data(), first);
  floats.resize(100);
  EXPECT_EQ(floats.data(), first);
  EXPECT_EQ(floats.size(), 100U);
}

}  // namespace
}  // namespace capstan::kge
