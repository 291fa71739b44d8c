// parameters_test.cpp -- ranges of the parameters of optimizers and initializers.
// Tests: src/protocol/check_optimizer.cpp
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "protocol/descriptor.hpp"
#include "support/expect_error.hpp"

namespace capstan::protocol {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Parameter {
  const char* name;
  double Optimizer::*field;
  std::vector<double> accepted;
  std::vector<double> rejected;  // in addition to NaN, infinities and numbers beyond float32
};

struct Rule {
  Optimizer optimizer;
  std::vector<Parameter> parameters;
};

std::vector<Rule> rules() {
  const Parameter rate{"learning_rate", &Optimizer::learning_rate, {-1, 0, 1e30}, {}};
  const Parameter accumulator{"initial_accumulator", &Optimizer::initial_accumulator, {0, 5}, {-1e-9}};
  const Parameter epsilon{"epsilon", &Optimizer::epsilon, {0, 1}, {-1e-9}};
  const Parameter beta1{"beta1", &Optimizer::beta1, {0, 0.999999}, {-0.1, 1, 1.5}};
  const Parameter beta2{"beta2", &Optimizer::beta2, {0, 0.999999}, {-0.1, 1, 1.5}};
  return {
      {optimizers::SGD{}, {rate}},
      {optimizers::Momentum{}, {rate, {"momentum", &Optimizer::momentum, {0, 1}, {-0.1, 1.1}}}},
      {optimizers::Adagrad{}, {rate, accumulator, epsilon}},
      {optimizers::RMSProp{}, {rate, epsilon, {"rho", &Optimizer::rho, {0, 1}, {-0.1, 1.1}}}},
      {optimizers::Adam{}, {rate, beta1, beta2, epsilon}},
      {optimizers::AdamW{},
       {rate, beta1, beta2, epsilon, {"weight_decay", &Optimizer::weight_decay, {0, 2}, {-0.1}}}},
      {optimizers::FTRL{},
       {{"learning_rate", &Optimizer::learning_rate, {1e-3, 1e3}, {0, -1, 1e-300}},
        {"learning_rate_power", &Optimizer::learning_rate_power, {0, -2}, {0.5}},
        accumulator,
        {"l1", &Optimizer::l1, {0, 1}, {-0.1}},
        {"l2", &Optimizer::l2, {0, 1}, {-0.1}},
        {"l2_shrinkage", &Optimizer::l2_shrinkage, {0, 1}, {-0.1}},
        {"beta", &Optimizer::beta, {0, 1}, {-0.1}}}},
  };
}

std::string expect_rejected(DType dtype, const Optimizer& optimizer) {
  return error_of(Code::invalid_argument, [&] { check_optimizer("w", dtype, optimizer); });
}

TEST(OptimizerParameters, RejectsOutOfRangeValuesByName) {
  for (const Rule& rule : rules()) {
    ASSERT_FALSE(rule.parameters.empty());
    for (const Parameter& parameter : rule.parameters) {
      SCOPED_TRACE(describe(rule.optimizer) + ": " + parameter.name);
      Optimizer optimizer = rule.optimizer;
      for (const double value : parameter.accepted) {
        optimizer.*parameter.field = value;
        EXPECT_NO_THROW(check_optimizer("w", DType::float32, optimizer)) << value;
        EXPECT_NO_THROW(check_optimizer("w", DType::float64, optimizer)) << value;
      }
      std::vector<double> rejected = parameter.rejected;
      rejected.insert(rejected.end(), {kNan, kInfinity, -kInfinity, 1e300, -1e300});
      for (const double value : rejected) {
        optimizer.*parameter.field = value;
        const std::string text = expect_rejected(DType::float32, optimizer);
        EXPECT_NE(text.find("\"w\""), std::string::npos) << text;
        EXPECT_NE(text.find(parameter.name), std::string::npos) << text;
        expect_rejected(DType::float16, optimizer);
      }
      for (const double value : {kNan, kInfinity, -kInfinity}) {
        optimizer.*parameter.field = value;
        expect_rejected(DType::float64, optimizer);
      }
    }
  }
}

TEST(OptimizerParameters, RejectsInvalidSchedulesByName) {
  const auto rejected = [](const LearningRate& rate, const std::string& parameter) {
    const std::string text = expect_rejected(DType::float32, optimizers::Adam{rate});
    EXPECT_NE(text.find("\"w\": " + parameter), std::string::npos) << text;
  };
  rejected(schedules::ExponentialDecay{.decay_steps = 0}, "decay_steps");
  rejected(schedules::ExponentialDecay{.decay_steps = kNan}, "decay_steps");
  rejected(schedules::InverseTimeDecay{.decay_rate = -0.5}, "decay_rate");
  rejected(schedules::ExponentialDecay{.decay_rate = kInfinity}, "decay_rate");
  rejected(schedules::PolynomialDecay{.power = -1}, "power");
  rejected(schedules::PolynomialDecay{.end_learning_rate = kNan}, "a learning rate of the schedule");
  rejected(schedules::CosineDecay{.warmup_steps = -1}, "warmup_steps");
  rejected(schedules::CosineDecay{.alpha = kNan}, "a learning rate of the schedule");
  rejected(schedules::PiecewiseConstantDecay{{1, 2}, {1, 2}}, "the number of values");
  rejected(schedules::PiecewiseConstantDecay{{}, {}}, "the number of values");
  rejected(schedules::PiecewiseConstantDecay{{2, 2}, {1, 2, 3}}, "a boundary");
  rejected(schedules::PiecewiseConstantDecay{{2}, {1, 1e300}}, "a learning rate of the schedule");
  rejected({0.1, {.kind = static_cast<ScheduleKind>(9)}}, "the kind");
  EXPECT_NO_THROW(check_optimizer("w", DType::float32, optimizers::Adam{schedules::CosineDecay{}}));
}

TEST(OptimizerParameters, RejectsFtrlSchedulesThatReachZero) {
  for (const LearningRate& rate :
       {LearningRate(schedules::PolynomialDecay{.end_learning_rate = 0}),
        LearningRate(schedules::CosineDecay{}), LearningRate(schedules::PiecewiseConstantDecay{{1}, {1, 0}}),
        LearningRate(schedules::ExponentialDecay{.decay_rate = 0.96})}) {
    expect_rejected(DType::float32, optimizers::FTRL{rate});
  }
  EXPECT_NO_THROW(
      check_optimizer("w", DType::float32, optimizers::FTRL{schedules::CosineDecay{.alpha = 0.1}}));
  EXPECT_NO_THROW(check_optimizer("w", DType::float32, optimizers::FTRL{schedules::InverseTimeDecay{}}));
}

TEST(OptimizerParameters, RejectsSchedulesForIntegers) {
  expect_rejected(DType::int32, optimizers::SGD{schedules::PiecewiseConstantDecay{{1}, {2, 1}}});
}

TEST(OptimizerParameters, IgnoresParametersThatTheOptimizerDoesNotUse) {
  Optimizer optimizer = optimizers::SGD{};
  optimizer.beta1 = kNan;
  optimizer.l1 = -1;
  EXPECT_NO_THROW(check_optimizer("w", DType::float32, optimizer));
}

TEST(OptimizerParameters, IntegersNeedSgdWithAnIntegerRate) {
  for (const DType dtype : {DType::int32, DType::int64}) {
    for (const double rate : {0.0, 1.0, -3.0, 2e9}) {
      EXPECT_NO_THROW(check_optimizer("n", dtype, optimizers::SGD{.learning_rate = rate})) << rate;
    }
    for (const double rate : {0.5, 1e30, -1e30, kNan, kInfinity}) {
      expect_rejected(dtype, optimizers::SGD{.learning_rate = rate});
    }
    expect_rejected(dtype, optimizers::Momentum{.learning_rate = 1});
  }
  expect_rejected(DType::int32, optimizers::SGD{.learning_rate = 3e9});
}

TEST(OptimizerParameters, RejectsUnknownKinds) {
  for (const int kind : {0, 8, 255}) {
    expect_rejected(DType::float32, {.kind = static_cast<OptimizerKind>(kind)});
  }
}

TEST(InitializerParameters, RejectsOutOfRangeValues) {
  using namespace initializers;
  const auto expect_all_rejected = [](DType dtype, const std::vector<Initializer>& all) {
    for (const Initializer& one : all) {
      const std::string text = error_of(Code::invalid_argument, [&] {
        check_initializer("w", dtype, {4, 4}, one);
      });
      EXPECT_NE(text.find("\"w\""), std::string::npos) << text;
    }
  };
  const std::vector<Initializer> invalid{uniform(1, 0),
                                         uniform(kNan, 1),
                                         uniform(0, kInfinity),
                                         normal(kNan, 1),
                                         normal(0, kNan),
                                         normal(0, -1),
                                         normal(kInfinity, 1),
                                         truncated_normal(0, kInfinity),
                                         orthogonal(kNan),
                                         identity(kInfinity),
                                         {static_cast<InitializerKind>(0), 0, 0, 0},
                                         {static_cast<InitializerKind>(7), 0, 0, 0}};
  for (const DType dtype : {DType::float32, DType::float64, DType::float16})
    expect_all_rejected(dtype, invalid);
  const std::vector<Initializer> valid_in_double{uniform(-1e300, 1e300), normal(0, 1e300), normal(1e300, 0),
                                                 orthogonal(1e300), identity(1e300)};
  expect_all_rejected(DType::float32, valid_in_double);
  for (const Initializer& one : valid_in_double) {
    EXPECT_NO_THROW(check_initializer("w", DType::float64, {4, 4}, one));
  }
  expect_all_rejected(DType::float16, {uniform(0, 70'000)});
}

}  // namespace
}  // namespace capstan::protocol
