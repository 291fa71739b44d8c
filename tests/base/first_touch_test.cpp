// first_touch_test.cpp -- available memory is checked before memory is zeroed.
#include "base/first_touch.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "capstan/error.hpp"

namespace capstan {
namespace {

constexpr std::uint64_t kPetabyte = std::uint64_t{1} << 50;

TEST(MemoryLeft, IsPositiveAndPlausible) {
  EXPECT_GT(memory_left(), 0U);
  EXPECT_LT(memory_left(), kPetabyte);
}

TEST(CheckMemoryLeft, ReservesMemoryForOtherProcesses) {
  const std::uint64_t before = memory_left();
  const std::uint64_t left = check_memory_left(1);
  EXPECT_GT(left, 0U);
  EXPECT_LT(left, std::max(before, memory_left()));
}

TEST(CheckMemoryLeft, ThrowsResourceExhaustedBeyondAvailableMemory) {
  try {
    (void)check_memory_left(kPetabyte);
    FAIL() << "accepted a petabyte";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::resource_exhausted);
  }
}

TEST(TouchFirst, MakesEveryPageResidentAndZero) {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  void* mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const std::span<std::byte> memory(static_cast<std::byte*>(mapped), kBytes);
  touch_first(memory);
  std::vector<unsigned char> resident(kBytes / 4096);
  ASSERT_EQ(mincore(mapped, kBytes, resident.data()), 0);
  EXPECT_EQ(
      std::count_if(resident.begin(), resident.end(), [](unsigned char page) { return (page & 1) != 0; }),
      static_cast<std::ptrdiff_t>(resident.size()));
  EXPECT_TRUE(std::all_of(memory.begin(), memory.end(), [](std::byte byte) { return byte == std::byte{0}; }));
  munmap(mapped, kBytes);
}

TEST(TouchFirst, AcceptsEmptyMemory) { EXPECT_NO_THROW(touch_first({})); }

}  // namespace
}  // namespace capstan
