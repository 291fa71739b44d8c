// replica_threads_test.cpp -- threads of replicas, which are reused in every round.
#include "strategy/replica_threads.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>
#include <vector>

namespace capstan::strategy {
namespace {

TEST(ReplicaThreads, CallsEachReplicaExceptTheFirstOncePerRound) {
  std::vector<int> calls(4);
  std::vector<std::set<std::thread::id>> ids(4);
  ReplicaThreads threads(4, [&](int replica) {
    ++calls[static_cast<std::size_t>(replica)];
    ids[static_cast<std::size_t>(replica)].insert(std::this_thread::get_id());
  });
  for (int round = 0; round < 50; ++round) {
    threads.ensure_started();
    threads.begin_round();
    ASSERT_TRUE(threads.wait(std::chrono::seconds(60)));
  }
  EXPECT_EQ(calls, (std::vector<int>{0, 50, 50, 50}));
  EXPECT_EQ(ids[1].size(), 1U) << "the thread must be reused";
}

TEST(ReplicaThreads, WaitReturnsFalseWhileAReplicaRuns) {
  std::promise<void> release;
  ReplicaThreads threads(2, [&](int) { release.get_future().wait(); });
  threads.ensure_started();
  threads.begin_round();
  EXPECT_FALSE(threads.wait(std::chrono::milliseconds(1)));
  release.set_value();
  EXPECT_TRUE(threads.wait(std::chrono::seconds(60)));
}

TEST(ReplicaThreads, OneReplicaNeedsNoThread) {
  ReplicaThreads threads(1, [](int) { FAIL(); });
  threads.ensure_started();
  threads.begin_round();
  EXPECT_TRUE(threads.wait(std::chrono::milliseconds(0)));
}

}  // namespace
}  // namespace capstan::strategy
