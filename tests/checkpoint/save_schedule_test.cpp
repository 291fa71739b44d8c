// save_schedule_test.cpp -- the conditions under which a checkpoint is due.
#include "capstan/checkpoint.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "capstan/error.hpp"

namespace capstan {
namespace {

using namespace std::chrono_literals;

const SaveSchedule::Clock::time_point kBegin{};

TEST(SaveSchedule, IsNeverDueWithoutAnInterval) {
  const SaveSchedule schedule({}, 0, kBegin);
  EXPECT_FALSE(schedule.due(1'000'000, kBegin + 1000h));
}

TEST(SaveSchedule, IsDueAfterANumberOfSteps) {
  SaveSchedule schedule({.steps = 10}, 5, kBegin);
  EXPECT_FALSE(schedule.due(14, kBegin));
  EXPECT_TRUE(schedule.due(15, kBegin));
  schedule.saved(17, kBegin, kBegin);
  EXPECT_FALSE(schedule.due(26, kBegin));
  EXPECT_TRUE(schedule.due(27, kBegin));
}

TEST(SaveSchedule, IsDueByTimeSinceTheEndOfTheLastSave) {
  SaveSchedule schedule({.time = 10s}, 0, kBegin);
  EXPECT_FALSE(schedule.due(1, kBegin + 9s));
  EXPECT_TRUE(schedule.due(1, kBegin + 10s));
  schedule.saved(1, kBegin + 10s, kBegin + 13s);
  EXPECT_FALSE(schedule.due(1, kBegin + 22s));
  EXPECT_TRUE(schedule.due(1, kBegin + 23s));
}

TEST(SaveSchedule, IsNeverDueForATimeBeyondTheClock) {
  const SaveSchedule schedule({.time = std::chrono::milliseconds::max()}, 0, kBegin);
  EXPECT_FALSE(schedule.due(1, kBegin + 10s));
}

TEST(SaveSchedule, IsDueIfTheOverheadAllowsIt) {
  SaveSchedule schedule({.overhead = 0.1}, 0, kBegin);
  EXPECT_TRUE(schedule.due(0, kBegin)) << "the duration of a save is unknown";
  schedule.saved(0, kBegin, kBegin + 2s);
  EXPECT_FALSE(schedule.due(1, kBegin + 2s + 17s));
  EXPECT_TRUE(schedule.due(1, kBegin + 2s + 18s)) << "2 s of 20 s";
}

TEST(SaveSchedule, IsDueByStepsOrTimeWhicheverIsFirst) {
  const SaveSchedule schedule({.steps = 10, .time = 10s}, 0, kBegin);
  EXPECT_TRUE(schedule.due(10, kBegin));
  EXPECT_TRUE(schedule.due(0, kBegin + 10s));
  EXPECT_FALSE(schedule.due(9, kBegin + 9s));
}

TEST(SaveSchedule, IsDueOnRequestAndOnASignal) {
  SaveSchedule schedule({}, 0, kBegin);
  SaveSchedule other({}, 0, kBegin);
  SaveSchedule::request();
  EXPECT_TRUE(schedule.due(0, kBegin));
  schedule.saved(0, kBegin, kBegin);
  EXPECT_FALSE(schedule.due(0, kBegin));
  EXPECT_TRUE(other.due(0, kBegin)) << "every schedule sees the request";
  SaveSchedule::request_on(SIGUSR1);
  std::raise(SIGUSR1);
  EXPECT_TRUE(schedule.due(0, kBegin));
}

TEST(SaveSchedule, RejectsInvalidIntervals) {
  EXPECT_THROW(SaveSchedule({.steps = -1}, 0, kBegin), Error);
  EXPECT_THROW(SaveSchedule({.time = -1s}, 0, kBegin), Error);
  EXPECT_THROW(SaveSchedule({.overhead = 1}, 0, kBegin), Error);
  EXPECT_THROW(SaveSchedule::request_on(SIGKILL), Error);
}

}  // namespace
}  // namespace capstan
