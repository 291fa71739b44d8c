// rules_test.cpp -- update rules on single numbers, compared with a scalar reference in double.
#include "gpu/rules.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/gpu/optimizers_to_test.hpp"
#include "tests/ps/plain_update.hpp"

namespace capstan::gpu {
namespace {

template <class Rule>
void check(const Optimizer& o, double tolerance) {
  std::mt19937 random(5);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 50; ++trial) {
    ps::PlainElement plain{normal(random), first_slot(o), 0};
    plain.w = static_cast<float>(plain.w);
    float w = static_cast<float>(plain.w), a = static_cast<float>(first_slot(o)), b = 0;
    plain.s0 = a;
    for (std::int64_t step = 1; step <= 5; ++step) {
      const float g = static_cast<float>(normal(random));
      if constexpr (std::is_constructible_v<Rule, const Optimizer&, std::int64_t>) {
        Rule(o, step)(Scalar(), g, w, a, b);
      } else {
        const Rule rule(o);
        rule(Scalar(), g, w, a, b);
      }
      ps::plain_update(o, plain, static_cast<double>(g), step);
      ASSERT_NEAR(w, plain.w, tolerance) << to_string(o.kind) << ", step " << step;
    }
  }
}

TEST(Rules, AgreeWithTheReference) {
  for (const Optimizer& o : optimizers_to_test()) {
    switch (o.kind) {
      case OptimizerKind::sgd:
        check<Sgd<float>>(o, 2e-6);
        break;
      case OptimizerKind::momentum:
        o.nesterov ? check<Momentum<float, true>>(o, 2e-6) : check<Momentum<float, false>>(o, 2e-6);
        break;
      case OptimizerKind::adagrad:
        check<Adagrad<float>>(o, 2e-6);
        break;
      case OptimizerKind::rmsprop:
        check<RmsProp<float>>(o, 2e-6);
        break;
      case OptimizerKind::adam:
        check<Adam<float, false>>(o, 2e-5);
        break;
      case OptimizerKind::adamw:
        check<Adam<float, true>>(o, 2e-5);
        break;
      case OptimizerKind::ftrl:
        o.learning_rate_power == -0.5 ? check<Ftrl<float, SquareRoot>>(o, 2e-5)
                                      : check<Ftrl<float, AnyPower>>(o, 2e-5);
        break;
    }
  }
}

TEST(Rules, IntegersWrapAround) {
  std::int32_t w = 10, a = 0, b = 0;
  const IntegerSgd<std::int32_t> rule(optimizers::SGD{2});
  rule(Scalar(), 3, w, a, b);
  EXPECT_EQ(w, 4);
  w = INT32_MIN;
  rule(Scalar(), 1, w, a, b);
  EXPECT_EQ(w, INT32_MAX - 1);
}

}  // namespace
}  // namespace capstan::gpu
