// progress_test.cpp -- the display with a string sink and a fake clock.
#include "launch/progress.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capstan::launch {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using namespace std::chrono_literals;

class ProgressTest : public testing::Test {
 protected:
  Progress make(bool terminal, std::size_t width = 100) {
    return Progress(sink_, {.terminal = terminal, .width = width}, [this] { return now_; });
  }
  Progress make_of_bytes(std::string_view label) {
    return Progress(sink_, {.unit = "B", .label = label}, [this] { return now_; });
  }
  /// Output since the last call.
  std::string written() {
    std::string text = sink_.str();
    sink_.str("");
    return text;
  }
  /// Text that a terminal would show, without erased lines.
  static std::string visible(const std::string& text) {
    const auto erased = text.rfind("\r\x1b[K");
    return erased == std::string::npos ? text : text.substr(erased + 4);
  }
  void pass(std::chrono::milliseconds time) { now_ += time; }

 private:
  std::ostringstream sink_;
  Progress::Time now_{1000h};
};

TEST_F(ProgressTest, BarShowsEpochRateLossAndTimeLeft) {
  Progress progress = make(true);
  progress.update({.epoch = 3, .epochs = 20, .done = 0, .total = 100'000, .loss = NAN});
  EXPECT_THAT(visible(written()),
              AllOf(StartsWith("epoch 3/20 [...."), HasSubstr("loss -"), HasSubstr("? left")));
  pass(2s);
  progress.update({.epoch = 3, .epochs = 20, .done = 50'000, .total = 100'000, .loss = 1.25});
  const std::string line = visible(written());
  EXPECT_THAT(line, AllOf(StartsWith("epoch 3/20 [##"), HasSubstr(" 50%"), HasSubstr("25.0 k triples/s"),
                          HasSubstr("loss 1.2500"), EndsWith("2.0 s left")));
  const std::string bar = line.substr(line.find('[') + 1, line.find(']') - line.find('[') - 1);
  ASSERT_GT(bar.size(), 10u);
  EXPECT_EQ(bar, std::string(bar.size() / 2, '#') + std::string(bar.size() - bar.size() / 2, '.'));
}

TEST_F(ProgressTest, RedrawsBarAtMostTenTimesPerSecond) {
  Progress progress = make(true);
  int drawn = 0;
  for (int ms = 0; ms < 1000; ++ms, pass(1ms)) {
    progress.update({.epoch = 1, .epochs = 1, .done = ms, .total = 1000, .loss = 0});
    drawn += written().empty() ? 0 : 1;
  }
  EXPECT_EQ(drawn, 10);
}

TEST_F(ProgressTest, BarFitsTheTerminal) {
  for (const std::size_t width : {1, 10, 40, 60, 80, 200}) {
    Progress progress = make(true, width);
    written();
    progress.update({.epoch = 1, .epochs = 1, .done = 1, .total = 2, .loss = 1});
    const std::string line = visible(written());
    EXPECT_LT(line.size(), width);
    EXPECT_EQ(line.find('\n'), std::string::npos);
  }
}

TEST_F(ProgressTest, LogGetsPlainLinesAtIntervals) {
  Progress progress = make(false);
  std::string all;
  for (int second = 0; second <= 12; ++second, pass(1s)) {
    progress.update({.epoch = 1, .epochs = 2, .done = second * 100, .total = 2000, .loss = 0.5});
    all += written();
  }
  EXPECT_EQ(all,
            "epoch 1/2  25%  100 triples/s  loss 0.5000  15.0 s left\n"
            "epoch 1/2  50%  100 triples/s  loss 0.5000  10.0 s left\n");
}

TEST_F(ProgressTest, TimeLeftIsAMaximumIfTheRunMayEndEarly) {
  Progress progress = make(false);
  progress.update({.epochs = 2, .done = 0, .total = 2000});
  pass(5s);
  progress.update({.epochs = 2, .done = 500, .total = 2000, .may_end_early = true});
  EXPECT_THAT(written(), EndsWith("  at most 15.0 s left\n"));
}

TEST_F(ProgressTest, LabelReplacesEpochAndLoss) {
  Progress progress = make_of_bytes("verify");
  for (int second = 0; second <= 6; ++second, pass(1s)) {
    progress.update({.done = second * 1'000'000'000LL, .total = 10'000'000'000LL});
  }
  EXPECT_EQ(written(), "verify  50%  1.00 GB/s  5.0 s left\n");
}

TEST_F(ProgressTest, RateCoversRecentSeconds) {
  Progress progress = make(false);
  std::int64_t done = 0;
  for (int second = 0; second <= 60; ++second, pass(1s)) {
    done += second <= 30 ? 1000 : 10;
    progress.update({.epoch = 1, .epochs = 1, .done = done, .total = 1'000'000, .loss = 0});
  }
  const std::string text = written();
  EXPECT_THAT(text.substr(text.rfind("epoch")), HasSubstr(" 10 triples/s"));
}

TEST_F(ProgressTest, RateOfResumedRunExcludesEarlierExamples) {
  Progress progress = make(false);
  progress.update({.epoch = 11, .epochs = 20, .done = 1'000'000, .total = 2'000'000, .loss = 1});
  pass(5s);
  progress.update({.epoch = 11, .epochs = 20, .done = 1'000'500, .total = 2'000'000, .loss = 1});
  EXPECT_THAT(written(), HasSubstr(" 100 triples/s"));
  pass(5s);
  progress.finish({.epoch = 20, .epochs = 20, .done = 1'001'000, .total = 2'000'000, .loss = 1});
  EXPECT_THAT(written(), HasSubstr("1.00 k triples in 10.0 s, 100 triples/s"));
}

TEST_F(ProgressTest, FinishReplacesTheBar) {
  Progress progress = make(true);
  progress.update({.epoch = 1, .epochs = 2, .done = 0, .total = 10'000, .loss = 2});
  pass(90s);
  written();
  progress.finish({.epoch = 2, .epochs = 2, .done = 10'000, .total = 10'000, .loss = 0.125});
  EXPECT_EQ(written(), "\r\x1b[Kepoch 2/2: 10.0 k triples in 1:30 min, 111 triples/s, loss 0.1250\n");
  pass(10s);
  progress.update({.epoch = 2, .epochs = 2, .done = 10'000, .total = 10'000, .loss = 0});
  progress.finish({.epoch = 2, .epochs = 2, .done = 10'000, .total = 10'000, .loss = 0});
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressTest, PrintsNothingWithoutUpdate) {
  { Progress progress = make(true); }
  { Progress progress = make(false); }
  EXPECT_EQ(written(), "");
}

TEST_F(ProgressTest, UpdateRedrawsAfterClear) {
  Progress progress = make(true);
  progress.update({.epoch = 1, .epochs = 1, .done = 1, .total = 2, .loss = 0});
  written();
  progress.clear();
  EXPECT_EQ(written(), "\r\x1b[K");
  progress.clear();
  EXPECT_EQ(written(), "");
  progress.update({.epoch = 1, .epochs = 1, .done = 1, .total = 2, .loss = 0});
  EXPECT_THAT(written(), HasSubstr("epoch 1/1"));
}

TEST_F(ProgressTest, DestructorEndsTheLineOfTheBar) {
  {
    Progress progress = make(true);
    progress.update({.epoch = 1, .epochs = 1, .done = 1, .total = 2, .loss = 0});
    written();
  }
  EXPECT_EQ(written(), "\n");
}

TEST_F(ProgressTest, HandlesInconsistentStates) {
  Progress progress = make(true);
  for (const ProgressState& state :
       {ProgressState{}, ProgressState{.done = 10, .total = 5}, ProgressState{.done = -1, .total = 5},
        ProgressState{.total = 1, .loss = INFINITY}}) {
    pass(1s);
    progress.update(state);
    EXPECT_THAT(visible(written()),
                AllOf(StartsWith("epoch 0/0"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
  }
}

}  // namespace
}  // namespace capstan::launch
