// dead_ranks_test.cpp -- the set of dead ranks, written by one thread and read by another.
#include "cluster/membership/dead_ranks.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace capstan::cluster {
namespace {

TEST(DeadRanks, ContainARankFromItsDeathUntilItIsRestarted) {
  DeadRanks dead;
  EXPECT_FALSE(dead.contains(3));
  dead.add(3);
  dead.add(3);
  EXPECT_TRUE(dead.contains(3));
  EXPECT_FALSE(dead.contains(4));
  dead.remove(3);
  EXPECT_FALSE(dead.contains(3));
  EXPECT_NO_THROW(dead.remove(4));
}

TEST(DeadRanks, AreReadWhileAnotherThreadAddsThem) {
  constexpr int kRanks = 1000;
  DeadRanks dead;
  std::atomic<int> added{0};
  const std::jthread adding([&] {
    for (int rank = 0; rank < kRanks; ++rank) {
      dead.add(rank);
      added = rank + 1;
    }
  });
  for (int seen = 0; seen < kRanks; seen = added) {
    if (seen > 0) ASSERT_TRUE(dead.contains(seen - 1));
  }
  EXPECT_TRUE(dead.contains(kRanks - 1));
}

}  // namespace
}  // namespace capstan::cluster
