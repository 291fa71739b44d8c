// failure_detector_test.cpp -- every transition of a watched rank, with a simulated clock.
#include "cluster/membership/failure_detector.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace capstan::cluster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class FailureDetectorTest : public testing::Test {
 protected:
  using Ranks = std::vector<int>;
  /// Lets `time` pass, with a check every period, while the ranks in `alive` send heartbeats; returns the new
  /// suspects.
  Ranks suspects_after(milliseconds time, const Ranks& alive = {}) {
    Ranks suspected;
    for (const auto end = now_ + time; now_ < end;) {
      now_ += detector_.period();
      for (const int rank : alive) detector_.heard(rank, now_);
      for (const int rank : detector_.check(now_)) suspected.push_back(rank);
    }
    return suspected;
  }
  /// Starts with another detector, and checks once: silence counts only from the first check.
  void begin(const FailureDetector& detector) {
    detector_ = detector;
    (void)detector_.check(now_);
  }
  void hear(const Ranks& ranks) {
    for (const int rank : ranks) detector_.heard(rank, now_);
  }

  FailureDetector detector_{seconds(1)};
  FailureDetector::Clock::time_point now_ = FailureDetector::Clock::now();
};

TEST_F(FailureDetectorTest, SuspectsASilentRankOnceWithinTheTimeout) {
  hear({1, 2, 3});
  EXPECT_EQ(suspects_after(seconds(10), {1, 2, 3}), Ranks{});
  EXPECT_EQ(suspects_after(milliseconds(600), {1, 3}), Ranks{});
  EXPECT_FALSE(detector_.suspects(2));
  EXPECT_EQ(suspects_after(milliseconds(400), {1, 3}), Ranks{2});
  EXPECT_EQ(suspects_after(seconds(2), {1, 3}), Ranks{});
  EXPECT_TRUE(detector_.suspects(2));
  EXPECT_TRUE(detector_.watches(2));
}

TEST_F(FailureDetectorTest, HeartbeatClearsASuspicionUntilTheNextSilence) {
  hear({1});
  EXPECT_EQ(suspects_after(seconds(1)), Ranks{1});
  EXPECT_TRUE(detector_.heard(1, now_));
  EXPECT_FALSE(detector_.suspects(1));
  EXPECT_FALSE(detector_.heard(1, now_)) << "rank 1 was not suspected";
  EXPECT_EQ(suspects_after(seconds(1)), Ranks{1});
}

TEST_F(FailureDetectorTest, DoesNotSuspectABusyRankUntilItsNextHeartbeat) {
  detector_.heard(1, now_, /*busy=*/true);
  EXPECT_EQ(suspects_after(seconds(100)), Ranks{});
  hear({1});
  EXPECT_EQ(suspects_after(seconds(1)), Ranks{1});
}

TEST_F(FailureDetectorTest, RankWithoutAHeartbeatIsUnknown) {
  EXPECT_EQ(suspects_after(seconds(5)), Ranks{});
  EXPECT_FALSE(detector_.watches(1));
}

TEST_F(FailureDetectorTest, WatchesAForgottenRankAgainFromItsNextHeartbeat) {
  hear({1, 2});
  EXPECT_EQ(suspects_after(seconds(1), {1}), Ranks{2});
  detector_.forget(1);
  detector_.forget(2);
  detector_.forget(3);
  EXPECT_FALSE(detector_.watches(1));
  EXPECT_FALSE(detector_.suspects(2));
  EXPECT_EQ(suspects_after(seconds(5)), Ranks{});
  hear({1});
  EXPECT_EQ(suspects_after(seconds(1)), Ranks{1});
}

TEST_F(FailureDetectorTest, TimeWithoutAPollIsNotSilence) {
  hear({1, 2});
  EXPECT_EQ(suspects_after(seconds(1), {1, 2}), Ranks{});
  now_ += seconds(30);  // this process was stopped
  EXPECT_EQ(suspects_after(milliseconds(600)), Ranks{});
  EXPECT_EQ(suspects_after(milliseconds(800), {1}), Ranks{2});
}

TEST_F(FailureDetectorTest, PollsOncePerPeriod) {
  hear({1});
  EXPECT_EQ(detector_.check(now_), Ranks{});
  EXPECT_EQ(detector_.until_next_check(now_), detector_.period());
  EXPECT_EQ(detector_.check(now_ + milliseconds(1)), Ranks{});
  EXPECT_EQ(detector_.until_next_check(now_ + milliseconds(1)), detector_.period() - milliseconds(1));
  EXPECT_EQ(detector_.until_next_check(now_ + seconds(1)), milliseconds(0));
}

TEST_F(FailureDetectorTest, SuspectsNoRankWithoutATimeout) {
  detector_ = FailureDetector(milliseconds(0));
  EXPECT_FALSE(detector_.on());
  EXPECT_EQ(detector_.period(), milliseconds(0));
  hear({1});
  EXPECT_EQ(detector_.check(now_ + seconds(1000)), Ranks{});
}

TEST_F(FailureDetectorTest, TimeoutOfTheCoordinatorIsAtLeastTenOfItsPeriods) {
  begin(FailureDetector::for_coordinator(milliseconds(200), seconds(1)));
  hear({0});
  EXPECT_EQ(suspects_after(milliseconds(1800)), Ranks{});
  EXPECT_EQ(suspects_after(milliseconds(200)), Ranks{0});
  begin(FailureDetector::for_coordinator(milliseconds(200), seconds(3)));
  hear({0});
  EXPECT_EQ(suspects_after(milliseconds(2800)), Ranks{});
  EXPECT_EQ(suspects_after(milliseconds(200)), Ranks{0});
  detector_ = FailureDetector::for_coordinator(milliseconds(0), seconds(3));
  EXPECT_FALSE(detector_.on());
}

}  // namespace
}  // namespace capstan::cluster
