// shared_regions_test.cpp -- regions in a file that other processes of the host can map, or from the fabric.
#include "ps/shard/shared_regions.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "transport/loop/loop.hpp"
#include "transport/memory/persistent_memory.hpp"
#include "transport/ucx/fabric.hpp"

namespace capstan::ps {
namespace {

void expect_zeros_and_fill(transport::Region& region, std::uint64_t bytes, std::byte with) {
  const auto memory = region.memory();
  ASSERT_EQ(memory.size(), bytes);
  EXPECT_TRUE(std::all_of(memory.begin(), memory.end(), [](std::byte byte) { return byte == std::byte{0}; }));
  std::fill(memory.begin(), memory.end(), with);
}

/// Regions are consecutive in the file; their sizes are not multiples of a page.
void expect_separate_regions(transport::Fabric& fabric) {
  SharedRegions regions(fabric);
  std::vector<std::unique_ptr<transport::Region>> all;
  const std::vector<std::uint64_t> sizes{1, 5000, 4096, 100000};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    all.push_back(regions.allocate(sizes[i]));
    expect_zeros_and_fill(*all.back(), sizes[i], static_cast<std::byte>(i + 1));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto memory = all[i]->memory();
    EXPECT_EQ(std::count(memory.begin(), memory.end(), static_cast<std::byte>(i + 1)),
              static_cast<std::ptrdiff_t>(sizes[i]));
  }
}

TEST(SharedRegionsTest, AllocatesZeroedRegionsThatDoNotOverlap) {
  transport::UcxFabric fabric;
  expect_separate_regions(fabric);
}

TEST(SharedRegionsTest, AllocatesFromAFabricThatAdoptsNoMemory) {
  transport::LoopHub hub;
  const auto fabric = hub.open();
  expect_separate_regions(*fabric);
}

TEST(SharedRegionsTest, AllocatesRegionsThatOtherProcessesCanMap) {
  transport::UcxFabric fabric;
  SharedRegions regions(fabric);
  const auto other = regions.allocate(100);
  const auto region = regions.allocate(5000);
  const transport::RegionKey key = region->key();
  std::byte* const mapped = transport::map_persistent(key.file, 5000);
  ASSERT_NE(mapped, nullptr);
  region->memory()[4999] = std::byte{7};
  EXPECT_EQ(mapped[4999], std::byte{7});
}

}  // namespace
}  // namespace capstan::ps
