// stop_request_test.cpp -- early stop of training, with a simulated clock and Slurm.
#include "train/stop_request.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "base/settings.hpp"

namespace capstan::train {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class StopAtTimeLimit : public testing::Test {
 protected:
  StopRequest request(seconds margin, bool can_save = true) {
    return StopRequest({.margin = margin}, can_save, [this] {
      ++queries_;
      return answer_;
    });
  }
  static StopRequest::Clock::time_point at(int second) {
    return StopRequest::Clock::time_point{} + seconds(1'000'000 + second);
  }

  TimeLeft answer_{.known = true, .left = seconds(600)};
  int queries_ = 0;
};

TEST_F(StopAtTimeLimit, StopsAtTheMargin) {
  StopRequest stop = request(seconds(120));
  EXPECT_EQ(stop.reason(milliseconds(0), at(0)), "");
  EXPECT_EQ(stop.reason(milliseconds(0), at(479)), "");
  EXPECT_EQ(queries_, 1);
  answer_.left = seconds(119);
  EXPECT_EQ(stop.reason(milliseconds(0), at(481)), "119 s of the job's time are left");
  EXPECT_EQ(queries_, 2);
}

TEST_F(StopAtTimeLimit, LimitsTheMarginOfShortJobsToAQuarter) {
  answer_.left = seconds(60);
  StopRequest stop({.margin = seconds(120), .limit_margin_to_quarter = true}, true,
                   [this] { return answer_; });
  EXPECT_EQ(stop.reason(milliseconds(0), at(0)), "");
  EXPECT_EQ(stop.reason(milliseconds(0), at(44)), "");
  answer_.left = seconds(14);
  EXPECT_EQ(stop.reason(milliseconds(0), at(46)), "14 s of the job's time are left");
}

TEST_F(StopAtTimeLimit, LeavesTimeUntilTheNextCheck) {
  StopRequest stop = request(seconds(120));
  EXPECT_EQ(stop.reason(seconds(300), at(0)), "");
  answer_.left = seconds(400);
  EXPECT_NE(stop.reason(seconds(300), at(200)), "");
}

TEST_F(StopAtTimeLimit, DetectsAnExtendedLimit) {
  StopRequest stop = request(seconds(120));
  EXPECT_EQ(stop.reason(milliseconds(0), at(0)), "");
  answer_.left = seconds(3600);
  EXPECT_EQ(stop.reason(milliseconds(0), at(590)), "");
  EXPECT_EQ(stop.reason(milliseconds(0), at(600)), "");
  EXPECT_EQ(queries_, 2);
}

TEST_F(StopAtTimeLimit, QueriesAgainIfTheTimeLeftIsUnknown) {
  answer_ = {};
  StopRequest stop = request(seconds(120));
  EXPECT_EQ(stop.reason(milliseconds(0), at(0)), "");
  EXPECT_EQ(stop.reason(milliseconds(0), at(1)), "");
  EXPECT_EQ(stop.reason(milliseconds(0), at(2)), "");
  EXPECT_EQ(queries_, 1);
  answer_ = {.known = true, .left = seconds(10)};
  EXPECT_NE(stop.reason(milliseconds(0), at(61)), "");
}

TEST_F(StopAtTimeLimit, DoesNotQueryUnlessNeeded) {
  StopRequest off = request(seconds(0));
  EXPECT_EQ(off.reason(milliseconds(0), at(10'000)), "");
  StopRequest without_directory = request(seconds(120), false);
  EXPECT_EQ(without_directory.reason(milliseconds(0), at(10'000)), "");
  EXPECT_EQ(queries_, 0);
  answer_ = {.known = true};
  StopRequest no_limit = request(seconds(120));
  EXPECT_EQ(no_limit.reason(milliseconds(0), at(0)), "");
  EXPECT_EQ(no_limit.reason(milliseconds(0), at(100'000)), "");
  EXPECT_EQ(queries_, 1);
}

TEST(StopAtSignal, StopsOnlyIfItCanSave) {
  const StopOptions options{.signal = SIGUSR1};
  StopRequest::install_handler(options);
  StopRequest stop(options, true);
  StopRequest without_directory(options, false);
  StopRequest other({}, true);
  EXPECT_EQ(stop.reason(milliseconds(0)), "");
  std::raise(SIGUSR1);
  EXPECT_EQ(stop.reason(milliseconds(0)), "a signal requested it");
  EXPECT_EQ(without_directory.reason(milliseconds(0)), "");
  EXPECT_EQ(other.reason(milliseconds(0)), "");
}

TEST(StopOptions, ReadsSettings) {
  Settings settings;
  EXPECT_EQ(StopOptions::from(settings).signal, SIGUSR1);
  EXPECT_EQ(StopOptions::from(settings).margin, seconds(120));
  EXPECT_TRUE(StopOptions::from(settings).limit_margin_to_quarter);
  settings.set_from_flag("save-signal", "USR2");
  settings.set_from_flag("save-before-limit", "0s");
  EXPECT_EQ(StopOptions::from(settings).signal, SIGUSR2);
  EXPECT_EQ(StopOptions::from(settings).margin, seconds(0));
  EXPECT_FALSE(StopOptions::from(settings).limit_margin_to_quarter);
  settings.set_from_flag("save-signal", "off");
  EXPECT_EQ(StopOptions::from(settings).signal, 0);
}

}  // namespace
}  // namespace capstan::train
