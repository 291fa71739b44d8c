// gather_test.cpp -- parts of any length, gathered at rank 0 or at all ranks, and a rank that is late.
#include "mpi/gather.hpp"

#include <gtest/gtest.h>

#include "mpi/outbox.hpp"
#include "support/poll.hpp"

namespace capstan::mpi {
namespace {

constexpr int kGatherTag = 11;

/// Rank 0 sends nothing, rank 1 one byte, rank 2 two thousand bytes.
Bytes part_of(int rank) {
  return Bytes(rank == 2 ? 2000U : static_cast<std::size_t>(rank), static_cast<std::byte>(rank));
}

std::vector<Bytes> gathered(const Communicator& world, bool everywhere) {
  Gather gather(world, part_of(world.rank()), everywhere);
  EXPECT_TRUE(poll([&] { return gather.done() ? std::optional(true) : std::nullopt; }).has_value());
  return gather.parts();
}

TEST(Gather, AllRanksReceivePartsInRankOrder) {
  const auto world = Communicator::world();
  EXPECT_EQ(gathered(world, /*everywhere=*/true), (std::vector{part_of(0), part_of(1), part_of(2)}));
}

TEST(Gather, OnlyRankZeroReceivesParts) {
  const auto world = Communicator::world();
  const auto parts = gathered(world, /*everywhere=*/false);
  EXPECT_EQ(parts,
            world.rank() == 0 ? (std::vector{part_of(0), part_of(1), part_of(2)}) : std::vector<Bytes>());
}

TEST(Gather, IsIncompleteUntilAllRanksTakePart) {
  const auto world = Communicator::world();
  if (world.rank() == 1) {
    ASSERT_TRUE(poll([&] { return world.take(kGatherTag); }).has_value());
  }
  Outbox outbox(world);
  Gather gather(world, part_of(world.rank()), /*everywhere=*/true);
  if (world.rank() == 0) {
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(gather.done());
    outbox.send(1, kGatherTag, {});
  }
  ASSERT_TRUE(poll([&] { return gather.done() ? std::optional(true) : std::nullopt; }).has_value());
  EXPECT_EQ(gather.parts().at(1), part_of(1));
}

}  // namespace
}  // namespace capstan::mpi
