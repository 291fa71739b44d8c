// backoff_test.cpp -- the time until a thread sleeps, and the affinity mask after migration.
#include "base/backoff.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <thread>
#include <vector>

namespace capstan {
namespace {

using std::chrono::milliseconds;
using Clock = Backoff::Clock;

milliseconds time_until_sleep(Backoff& backoff) {
  const auto begin = Clock::now();
  while (backoff.pause()) {
  }
  return std::chrono::duration_cast<milliseconds>(Clock::now() - begin);
}

TEST(BackoffTest, ReturnsFalseAfterThePollingTime) {
  Backoff backoff(milliseconds(30), milliseconds(30));
  EXPECT_GE(time_until_sleep(backoff), milliseconds(29));
  int polls = 0;
  while (backoff.pause()) ++polls;
  EXPECT_LT(polls, 100) << "the polling time restarts only at reset()";
}

TEST(BackoffTest, RestartsAfterReset) {
  Backoff backoff(milliseconds(30), milliseconds(30));
  time_until_sleep(backoff);
  backoff.reset();
  EXPECT_TRUE(backoff.pause());
  EXPECT_GE(time_until_sleep(backoff), milliseconds(29));
}

TEST(BackoffTest, MigrationPreservesTheAffinityMask) {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
  std::atomic<int> arrived = 0;
  const auto start_on_one_core = [&] {
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    ++arrived;
    while (arrived < 3) std::this_thread::yield();
    ASSERT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);
    Backoff backoff(milliseconds(200), milliseconds(200));
    time_until_sleep(backoff);
    cpu_set_t now;
    ASSERT_EQ(sched_getaffinity(0, sizeof now, &now), 0);
    EXPECT_TRUE(CPU_EQUAL(&now, &allowed));
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(start_on_one_core);
}

}  // namespace
}  // namespace capstan
