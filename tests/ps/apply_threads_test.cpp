// apply_threads_test.cpp -- each part runs once per call, by threads that poll, sleep or throw.
#include "ps/update/apply_threads.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

namespace capstan::ps {
namespace {

TEST(ApplyThreads, RunsEachPartOncePerCall) {
  for (const int count : {1, 2, 3, ApplyThreads::kMost}) {
    SCOPED_TRACE(count);
    ApplyThreads threads(count);
    EXPECT_EQ(threads.count(), count);
    std::array<std::atomic<int>, ApplyThreads::kMost> calls{};
    constexpr int kRuns = 2000;
    for (int run = 0; run < kRuns; ++run)
      threads.run([&](int part) { calls.at(static_cast<std::size_t>(part)).fetch_add(1); });
    for (int part = 0; part < ApplyThreads::kMost; ++part)
      EXPECT_EQ(calls.at(static_cast<std::size_t>(part)), part < count ? kRuns : 0) << part;
  }
}

TEST(ApplyThreads, MakesTheWritesOfAllPartsVisible) {
  ApplyThreads threads(3);
  std::array<std::uint64_t, 3> sums{};  // not atomic: ThreadSanitizer reports a missing order
  for (std::uint64_t run = 0; run < 1000; ++run)
    threads.run([&](int part) { sums.at(static_cast<std::size_t>(part)) += run; });
  for (const std::uint64_t sum : sums) EXPECT_EQ(sum, 999 * 1000 / 2);
}

/// One part waits for the other, so two threads must run them.
TEST(ApplyThreads, RunsPartsAtTheSameTimeAfterItsThreadsSlept) {
  ApplyThreads threads(2);
  for (int pass = 0; pass < 3; ++pass) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // longer than a thread polls
    std::atomic<int> begun = 0;
    threads.run([&](int) {
      begun.fetch_add(1);
      while (begun.load() != 2) std::this_thread::yield();
    });
    EXPECT_EQ(begun, 2);
  }
}

TEST(ApplyThreads, ThrowsTheExceptionOfAPartAfterAllHaveReturned) {
  ApplyThreads threads(3);
  for (int failing = 0; failing < 3; ++failing) {
    std::atomic<int> returned = 0;
    EXPECT_THROW(threads.run([&](int part) {
      if (part == failing) throw std::runtime_error("failed");
      returned.fetch_add(1);
    }),
                 std::runtime_error);
    EXPECT_EQ(returned, 2);
  }
  EXPECT_NO_THROW(threads.run([](int) {}));
}

}  // namespace
}  // namespace capstan::ps
