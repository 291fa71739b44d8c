// deadline_test.cpp -- deadlines, including those of timeouts beyond the range of the clock.
#include "base/deadline.hpp"

#include <gtest/gtest.h>

namespace capstan {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Time = std::chrono::steady_clock::time_point;

TEST(Deadline, IsNowPlusTheTimeout) {
  const Time now{std::chrono::hours(5)};
  EXPECT_EQ(deadline_after(milliseconds(7), now), now + milliseconds(7));
  EXPECT_EQ(deadline_after(nanoseconds(7), now), now + nanoseconds(7));
  EXPECT_EQ(deadline_after(milliseconds(0), now), now);
}

TEST(Deadline, SaturatesAtTheEndOfTheClock) {
  const Time now{std::chrono::hours(5)};
  EXPECT_EQ(deadline_after(milliseconds::max(), now), Time::max());
  EXPECT_EQ(deadline_after(nanoseconds::max(), now), Time::max());
  EXPECT_EQ(deadline_after(std::chrono::hours::max(), now), Time::max());
  EXPECT_EQ(deadline_after(milliseconds::min(), now), now);
  EXPECT_LT(deadline_after(std::chrono::hours(24 * 365 * 100), now), Time::max());
}

}  // namespace
}  // namespace capstan
