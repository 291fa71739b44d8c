// watchdog_test.cpp -- detects stalled closures, with a simulated clock.
#include "coordinator/scheduling/watchdog.hpp"

#include <gtest/gtest.h>

namespace capstan::coordinator {
namespace {

using std::chrono::milliseconds;

class WatchdogTest : public testing::Test {
 protected:
  bool stalled_after(milliseconds time, std::uint64_t ended, bool in_flight = true) {
    return watchdog_.stalled(now_ += time, ended, in_flight);
  }

  static constexpr milliseconds kStall{1000};
  Watchdog watchdog_{kStall};
  Watchdog::Clock::time_point now_{std::chrono::hours(1)};
};

TEST_F(WatchdogTest, ReportsAStallOncePerTimeout) {
  EXPECT_FALSE(stalled_after(milliseconds(0), 0));
  EXPECT_FALSE(stalled_after(kStall - milliseconds(1), 0));
  EXPECT_TRUE(stalled_after(milliseconds(1), 0));
  EXPECT_FALSE(stalled_after(kStall - milliseconds(1), 0));
  EXPECT_TRUE(stalled_after(milliseconds(1), 0));
}

TEST_F(WatchdogTest, CountsFromTheLastClosureThatEnded) {
  EXPECT_FALSE(stalled_after(milliseconds(0), 0));
  EXPECT_FALSE(stalled_after(kStall - milliseconds(1), 1));
  EXPECT_FALSE(stalled_after(kStall - milliseconds(1), 1));
  EXPECT_TRUE(stalled_after(milliseconds(1), 1));
}

TEST_F(WatchdogTest, ReportsNothingWhileNothingRuns) {
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(stalled_after(kStall, 0, false)) << i;
  EXPECT_FALSE(stalled_after(kStall, 0)) << "the closure has just started";
  EXPECT_TRUE(stalled_after(kStall, 0));
}

TEST_F(WatchdogTest, CountsFromTheNextClosureAfterAnIdlePeriod) {
  EXPECT_FALSE(stalled_after(milliseconds(0), 0));
  EXPECT_FALSE(stalled_after(kStall / 2, 0, false));
  EXPECT_FALSE(stalled_after(kStall / 2, 0));
  EXPECT_FALSE(stalled_after(kStall / 2, 0));
  EXPECT_TRUE(stalled_after(kStall / 2, 0));
}

TEST_F(WatchdogTest, PollsTenTimesPerTimeoutAtMostEveryMillisecond) {
  EXPECT_EQ(watchdog_.period(), milliseconds(100));
  EXPECT_EQ(Watchdog(milliseconds(3)).period(), milliseconds(1));
}

TEST_F(WatchdogTest, IsOffWithoutATimeout) {
  EXPECT_TRUE(watchdog_.on());
  EXPECT_FALSE(Watchdog(milliseconds(0)).on());
}

}  // namespace
}  // namespace capstan::coordinator
