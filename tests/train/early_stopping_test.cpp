// early_stopping_test.cpp -- which evaluation is the best, and when training stops.
#include "train/early_stopping.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace capstan::train {
namespace {

/// Returns the epoch after which training stops, 0 if it does not; epoch i has values[i - 1].
int stop_after(EarlyStopping& stopping, const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    stopping.record(static_cast<int>(i) + 1, values[i]);
    if (stopping.should_stop()) return static_cast<int>(i) + 1;
  }
  return 0;
}

TEST(EarlyStopping, StopsAfterEvaluationsWithoutImprovement) {
  EarlyStopping loss(2, false);
  EXPECT_EQ(stop_after(loss, {0.7, 0.5, 0.6, 0.4, 0.41, 0.42, 0.1}), 6);
  EXPECT_EQ(loss.best_epoch(), 4);
  EarlyStopping rank(2, true);
  EXPECT_EQ(stop_after(rank, {0.1, 0.3, 0.2, 0.4, 0.39, 0.4, 0.9}), 6);
  EXPECT_EQ(rank.best_epoch(), 4);
}

TEST(EarlyStopping, NeverStopsWithoutPatience) {
  EarlyStopping stopping(0, false);
  EXPECT_EQ(stop_after(stopping, {0.5, 0.6, 0.7, 0.8, 0.9}), 0);
  EXPECT_EQ(stopping.best_epoch(), 1);
}

TEST(EarlyStopping, IgnoresTinyImprovements) {
  EarlyStopping stopping(3, false);
  EXPECT_EQ(stop_after(stopping, {0.5, 0.499999, 0.499998, 0.499997}), 4);
  EXPECT_EQ(stopping.best_epoch(), 1);
}

TEST(EarlyStopping, InfinityAndNanAreNeverTheBest) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(EarlyStopping(2, false).record(1, std::numeric_limits<double>::infinity()));
  EarlyStopping stopping(2, false);
  EXPECT_FALSE(stopping.record(1, kNan));
  EXPECT_FALSE(stopping.best_epoch().has_value());
  EXPECT_TRUE(stopping.record(2, 0.5));
  EXPECT_FALSE(stopping.record(3, kNan));
  EXPECT_EQ(stopping.best_epoch(), 2);
}

TEST(EarlyStopping, ContinuesFromASavedState) {
  EarlyStopping first(3, false);
  EXPECT_EQ(stop_after(first, {0.5, 0.6, 0.7}), 0);
  EarlyStopping second(3, false);
  second.restore(first.state());
  EXPECT_FALSE(second.record(4, 0.5));
  EXPECT_TRUE(second.should_stop());
  EXPECT_EQ(second.best_epoch(), 1);
  EarlyStopping empty(3, false);
  empty.restore(EarlyStopping(3, false).state());
  EXPECT_FALSE(empty.best_epoch().has_value());
}

TEST(EarlyStopping, RestartKeepsTheBest) {
  EarlyStopping stopping(2, false);
  EXPECT_EQ(stop_after(stopping, {0.5, 0.6, 0.7}), 3);
  stopping.restart();
  EXPECT_FALSE(stopping.should_stop());
  EXPECT_EQ(stopping.best_epoch(), 1);
  EXPECT_FALSE(stopping.record(4, 0.55));
  EXPECT_FALSE(stopping.should_stop());
}

}  // namespace
}  // namespace capstan::train
