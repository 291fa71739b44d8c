// optimizers_test.cpp -- learning rates after a number of steps, compared with hand-computed values.
#include "capstan/optimizers.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace capstan {
namespace {

double rate(const LearningRate& learning_rate, std::int64_t steps) {
  return learning_rate_after(steps, optimizers::SGD{learning_rate});
}

TEST(LearningRate, OfANumberIsConstant) {
  EXPECT_EQ(rate(0.25, 0), 0.25);
  EXPECT_EQ(rate(0.25, 1'000'000), 0.25);
}

TEST(LearningRate, EveryOptimizerTakesASchedule) {
  const schedules::ExponentialDecay halves{.initial_learning_rate = 8, .decay_rate = 0.5};
  for (const Optimizer& optimizer :
       {Optimizer(optimizers::SGD{halves}), Optimizer(optimizers::Momentum{halves}),
        Optimizer(optimizers::Adagrad{halves}), Optimizer(optimizers::RMSProp{halves}),
        Optimizer(optimizers::Adam{halves}), Optimizer(optimizers::AdamW{halves}),
        Optimizer(optimizers::FTRL{halves})}) {
    SCOPED_TRACE(to_string(optimizer.kind));
    EXPECT_EQ(optimizer.learning_rate, 8);
    EXPECT_EQ(learning_rate_after(0, optimizer), 8);
    EXPECT_EQ(learning_rate_after(3, optimizer), 1);
  }
}

TEST(LearningRate, ExponentialDecayIsContinuousOrAStaircase) {
  schedules::ExponentialDecay decay{.initial_learning_rate = 0.5, .decay_steps = 100, .decay_rate = 0.25};
  EXPECT_DOUBLE_EQ(rate(decay, 50), 0.25);
  EXPECT_DOUBLE_EQ(rate(decay, 100), 0.125);
  decay.staircase = true;
  EXPECT_DOUBLE_EQ(rate(decay, 99), 0.5);
  EXPECT_DOUBLE_EQ(rate(decay, 100), 0.125);
}

TEST(LearningRate, InverseTimeDecayDividesByTheElapsedSteps) {
  schedules::InverseTimeDecay decay{.initial_learning_rate = 1, .decay_steps = 10, .decay_rate = 2};
  EXPECT_DOUBLE_EQ(rate(decay, 5), 0.5);
  EXPECT_DOUBLE_EQ(rate(decay, 20), 0.2);
  decay.staircase = true;
  EXPECT_DOUBLE_EQ(rate(decay, 9), 1);
  EXPECT_DOUBLE_EQ(rate(decay, 25), 0.2);
}

TEST(LearningRate, PolynomialDecayEndsOrCycles) {
  schedules::PolynomialDecay decay{
      .initial_learning_rate = 1, .decay_steps = 10, .end_learning_rate = 0.5, .power = 2};
  EXPECT_DOUBLE_EQ(rate(decay, 0), 1);
  EXPECT_DOUBLE_EQ(rate(decay, 5), 0.625);
  EXPECT_DOUBLE_EQ(rate(decay, 10), 0.5);
  EXPECT_DOUBLE_EQ(rate(decay, 1000), 0.5);
  decay.cycle = true;
  EXPECT_DOUBLE_EQ(rate(decay, 10), 0.5);
  EXPECT_DOUBLE_EQ(rate(decay, 15), 0.5 + 0.5 / 16) << "15 of 20 steps";
  EXPECT_DOUBLE_EQ(rate(decay, 20), 0.5);
}

TEST(LearningRate, CosineDecayMayWarmUp) {
  schedules::CosineDecay decay{.initial_learning_rate = 2, .decay_steps = 100, .alpha = 0.5};
  EXPECT_DOUBLE_EQ(rate(decay, 0), 2);
  EXPECT_DOUBLE_EQ(rate(decay, 25), 2 * (0.5 * (1 + std::numbers::sqrt2 / 2) / 2 + 0.5));
  EXPECT_DOUBLE_EQ(rate(decay, 50), 1.5);
  EXPECT_DOUBLE_EQ(rate(decay, 500), 1);
  decay.warmup_steps = 10;  // without a target there is no warm-up
  EXPECT_DOUBLE_EQ(rate(decay, 50), 1.5);
  decay.warmup_target = 4;
  EXPECT_DOUBLE_EQ(rate(decay, 0), 2);
  EXPECT_DOUBLE_EQ(rate(decay, 5), 3);
  EXPECT_DOUBLE_EQ(rate(decay, 10), 4);
  EXPECT_DOUBLE_EQ(rate(decay, 60), 3);
  EXPECT_DOUBLE_EQ(rate(decay, 110), 2);
  decay.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(rate(decay, 0), 4);
}

TEST(LearningRate, PiecewiseConstantDecayChangesAfterEachBoundary) {
  const schedules::PiecewiseConstantDecay pieces{.boundaries = {2, 5}, .values = {1, 0.5, 0.25}};
  EXPECT_EQ(rate(pieces, 0), 1);
  EXPECT_EQ(rate(pieces, 2), 1);
  EXPECT_EQ(rate(pieces, 3), 0.5);
  EXPECT_EQ(rate(pieces, 5), 0.5);
  EXPECT_EQ(rate(pieces, 6), 0.25);
}

}  // namespace
}  // namespace capstan
