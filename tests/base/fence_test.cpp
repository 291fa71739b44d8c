// fence_test.cpp -- ordering of stores and loads by thread_fence; signal_fence must compile everywhere.
#include "base/fence.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <thread>

namespace capstan {
namespace {

// The store-buffering litmus test: each thread stores to its own word and then loads the other's. Without a
// sequentially consistent fence between them, both loads can return 0, even on x86.
TEST(ThreadFence, OrdersStoreBeforeLaterLoad) {
  constexpr int kRounds = 20'000;
  std::atomic<int> first{0};
  std::atomic<int> second{0};
  int seen_by_first = 0;
  int seen_by_second = 0;
  int both_missed = 0;
  std::barrier start(2);
  std::barrier end(2, [&]() noexcept {
    if (seen_by_first == 0 && seen_by_second == 0) ++both_missed;
    first.store(0, std::memory_order_relaxed);
    second.store(0, std::memory_order_relaxed);
  });
  const auto run = [&](std::atomic<int>& own, std::atomic<int>& other, int& seen) {
    for (int round = 0; round < kRounds; ++round) {
      start.arrive_and_wait();
      own.store(1, std::memory_order_relaxed);
      thread_fence(std::memory_order_seq_cst);
      seen = other.load(std::memory_order_relaxed);
      signal_fence();
      end.arrive_and_wait();
    }
  };
  std::jthread other([&] { run(second, first, seen_by_second); });
  run(first, second, seen_by_first);
  EXPECT_EQ(both_missed, 0);
}

}  // namespace
}  // namespace capstan
