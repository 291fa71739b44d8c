// save_times_test.cpp -- sums of the times of saves.
#include "strategy/save_times.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace capstan::strategy {
namespace {

using namespace std::chrono_literals;

TEST(SaveTimes, AreZeroBeforeTheFirstSave) {
  const SaveMetrics metrics = SaveTimes().metrics();
  EXPECT_EQ(metrics.saves, 0U);
  EXPECT_EQ(metrics.waited_seconds, 0);
  EXPECT_EQ(metrics.written_seconds, 0);
  EXPECT_EQ(metrics.last_seconds, 0);
}

TEST(SaveTimes, AddUpAndKeepTheLast) {
  SaveTimes times;
  times.add_wait(250ms);
  times.add_saved(2s);
  times.add_wait(1s);
  times.add_saved(500ms);
  const SaveMetrics metrics = times.metrics();
  EXPECT_EQ(metrics.saves, 2U);
  EXPECT_DOUBLE_EQ(metrics.waited_seconds, 1.25);
  EXPECT_DOUBLE_EQ(metrics.written_seconds, 2.5);
  EXPECT_DOUBLE_EQ(metrics.last_seconds, 0.5);
}

TEST(SaveTimes, CountWaitsThatEndWithoutACheckpoint) {
  SaveTimes times;
  times.add_wait(3s);
  EXPECT_EQ(times.metrics().saves, 0U);
  EXPECT_DOUBLE_EQ(times.metrics().waited_seconds, 3);
  EXPECT_EQ(times.metrics().written_seconds, 0);
}

TEST(SaveTimes, CountSavesOfConcurrentThreads) {
  constexpr int kThreads = 4, kSaves = 1000;
  SaveTimes times;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&times] {
        for (int i = 0; i < kSaves; ++i) {
          times.add_wait(1s);
          times.add_saved(2s);
        }
      });
    }
  }
  EXPECT_EQ(times.metrics().saves, std::uint64_t{kThreads} * kSaves);
  EXPECT_EQ(times.metrics().waited_seconds, kThreads * kSaves);
  EXPECT_EQ(times.metrics().written_seconds, 2 * kThreads * kSaves);
}

}  // namespace
}  // namespace capstan::strategy
