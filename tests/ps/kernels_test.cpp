// kernels_test.cpp -- compares every optimizer with a scalar version in double, for sparse and dense updates
// and odd widths.
// Tests: src/ps/update/kernel_loop.hpp
// Tests: src/ps/update/kernel_rules.hpp
#include "ps/update/kernels.hpp"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "protocol/descriptor.hpp"
#include "ps/plain_update.hpp"

namespace capstan::ps {
namespace {

/// Compares five pushes, of which the third is dense, with plain_update. The arrays end with the last row, so
/// a kernel that writes past a row corrupts the next row or the heap.
template <class T>
void check(const Optimizer& o, std::uint64_t width, double tolerance) {
  constexpr std::uint64_t kRows = 150;
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  const std::size_t slots = protocol::slots_of(o.kind).size();
  const T first = slots > 0 ? static_cast<T>(protocol::initial_slot_value(o, 0)) : T{0};
  std::vector<T> w(kRows * width), s0(slots > 0 ? w.size() : 0, first), s1(slots > 1 ? w.size() : 0);
  std::vector<PlainElement> expected(w.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    w[i] = static_cast<T>(normal(random));
    expected[i] = {static_cast<double>(w[i]), static_cast<double>(first), 0};
  }
  std::vector<std::uint32_t> order(kRows);
  std::iota(order.begin(), order.end(), 0U);
  for (std::int64_t step = 1; step <= 5; ++step) {
    const bool dense = step == 3;
    std::shuffle(order.begin(), order.end(), random);
    const std::uint64_t count = dense ? kRows : 90;  // more than are prefetched at a time
    std::vector<T> gradient(count * width);
    for (T& g : gradient) g = static_cast<T>(normal(random));
    apply(o, Update<T>{w.data(), slots > 0 ? s0.data() : nullptr, slots > 1 ? s1.data() : nullptr, width,
                       dense ? nullptr : order.data(), 0, count, gradient.data(), step});
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t row = dense ? i : order[i];
      for (std::uint64_t j = 0; j < width; ++j) {
        plain_update(o, expected[row * width + j], static_cast<double>(gradient[i * width + j]), step);
      }
    }
  }
  SCOPED_TRACE(protocol::describe(o) + ", width " + std::to_string(width));
  for (std::size_t i = 0; i < w.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(w[i]), expected[i].w, tolerance) << "element " << i;
    if (slots > 0) {
      ASSERT_NEAR(static_cast<double>(s0[i]), expected[i].s0, tolerance) << "element " << i;
    }
    if (slots > 1) {
      ASSERT_NEAR(static_cast<double>(s1[i]), expected[i].s1, tolerance * 10) << "element " << i;
    }
  }
}

const std::vector<Optimizer>& all() {
  static const std::vector<Optimizer> optimizers = {
      optimizers::SGD{0.1},
      optimizers::Momentum{.learning_rate = 0.1},
      optimizers::Momentum{.learning_rate = 0.1, .momentum = 0.5, .nesterov = true},
      optimizers::Adagrad{.learning_rate = 0.1},
      optimizers::Adagrad{.learning_rate = 0.1, .initial_accumulator = 0, .epsilon = 1e-10},
      optimizers::RMSProp{.learning_rate = 0.01},
      optimizers::RMSProp{.learning_rate = 0.01, .rho = 0.5, .epsilon = 1e-2},
      optimizers::Adam{.learning_rate = 0.01},
      optimizers::AdamW{.learning_rate = 0.01, .weight_decay = 0.5},
      optimizers::FTRL{.learning_rate = 0.1},
      optimizers::FTRL{.learning_rate = 0.5, .initial_accumulator = 0},
      optimizers::FTRL{.learning_rate = 0.1, .l1 = 0.5, .l2 = 0.25, .l2_shrinkage = 0.125, .beta = 1},
      optimizers::FTRL{.learning_rate = 0.1, .learning_rate_power = -0.25, .l1 = 0.1},
      optimizers::FTRL{.learning_rate = 0.1, .learning_rate_power = 0},
  };
  return optimizers;
}

TEST(Kernels, MatchTheScalarRules) {
  for (const Optimizer& o : all()) {
    for (const std::uint64_t width : {1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 64, 100, 256}) {
      check<float>(o, width, 2e-5);
      check<double>(o, width, 1e-12);
    }
  }
}

/// Expects that 16-bit values are computed in float and rounded once per push, and that slots are float.
template <class T>
void check_halves(const Optimizer& o, std::uint64_t width) {
  const std::size_t slots = protocol::slots_of(o.kind).size();
  const auto first = static_cast<float>(slots > 0 ? protocol::initial_slot_value(o, 0) : 0);
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  constexpr std::uint64_t kRows = 4;
  std::vector<T> w(kRows * width);
  std::vector<float> same(w.size()), s0(w.size(), first), s1(w.size()), t0(s0), t1(s1);
  for (std::size_t i = 0; i < w.size(); ++i) same[i] = static_cast<float>(w[i] = T(normal(random)));
  const std::vector<std::uint32_t> rows{3, 1};
  for (std::int64_t step = 1; step <= 3; ++step) {
    std::vector<T> gradient(rows.size() * width);
    std::vector<float> exact(gradient.size());
    for (std::size_t i = 0; i < exact.size(); ++i)
      exact[i] = static_cast<float>(gradient[i] = T(normal(random)));
    apply(o, Update<T>{w.data(), s0.data(), s1.data(), width, rows.data(), 0, rows.size(), gradient.data(),
                       step});
    apply(o, Update<float>{same.data(), t0.data(), t1.data(), width, rows.data(), 0, rows.size(),
                           exact.data(), step});
    for (float& value : same) value = static_cast<float>(T(value));
    for (std::size_t i = 0; i < w.size(); ++i) {
      ASSERT_EQ(static_cast<float>(w[i]), same[i]) << protocol::describe(o) << " " << i;
    }
    ASSERT_EQ(s0, t0);
    ASSERT_EQ(s1, t1);
  }
}

TEST(Kernels, SixteenBitNumbersAreComputedInFloat) {
  for (const Optimizer& o : all()) {
    for (const std::uint64_t width : {1, 17, 2000}) {
      check_halves<float16>(o, width);
      check_halves<bfloat16>(o, width);
    }
  }
}

/// `apply` uses the widest vectors; other CPUs have narrower ones.
TEST(Kernels, EveryVectorWidthOfThisCpuMatches) {
  const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  ASSERT_FALSE(targets.empty());
  for (const std::int64_t target : targets) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::GetChosenTarget().Update(target);
    for (const Optimizer& o : all()) {
      for (const std::uint64_t width : {1, 5, 17, 40}) {
        check<float>(o, width, 2e-5);
        check<double>(o, width, 1e-12);
      }
    }
  }
  hwy::GetChosenTarget().DeInit();
}

TEST(Kernels, PreservesRowsOutsideThePush) {
  constexpr std::uint64_t kWidth = 17;
  const std::vector<std::uint32_t> rows{4, 1};
  for (const Optimizer& o : all()) {
    std::vector<float> w(6 * kWidth, 1), s0(w.size(), 2), s1(w.size(), 3);
    const std::vector<float> gradient(rows.size() * kWidth, 0.5F);
    apply(o, Update<float>{w.data(), s0.data(), s1.data(), kWidth, rows.data(), 0, rows.size(),
                           gradient.data(), 1});
    for (std::size_t i = 0; i < w.size(); ++i) {
      const bool named = i / kWidth == 1 || i / kWidth == 4;
      EXPECT_EQ(w[i] == 1 && s0[i] == 2 && s1[i] == 3, !named) << protocol::describe(o) << ", element " << i;
    }
  }
}

TEST(Kernels, NesterovLooksOneStepAhead) {
  // By hand: v = 0.5 * 0 - 0.25 * 1 = -0.25; w = 1 + 0.5 * -0.25 - 0.25 = 0.625;
  // then v = 0.5 * -0.25 - 0.25 = -0.375; w = 0.625 + 0.5 * -0.375 - 0.25 = 0.1875.
  double w = 1, velocity = 0;
  const double gradient = 1;
  const Update<double> update{&w, &velocity, nullptr, 1, nullptr, 0, 1, &gradient, 1};
  const Optimizer nesterov = optimizers::Momentum{.learning_rate = 0.25, .momentum = 0.5, .nesterov = true};
  apply(nesterov, update);
  EXPECT_EQ(w, 0.625);
  apply(nesterov, update);
  EXPECT_EQ(w, 0.1875);
}

TEST(Kernels, AdamWDecaysTheValueAndNotTheMoments) {
  double w = 8, m = 0, v = 0;
  const double gradient = 0;
  apply(optimizers::AdamW{.learning_rate = 0.5, .weight_decay = 0.25},
        Update<double>{&w, &m, &v, 1, nullptr, 0, 1, &gradient, 1});
  EXPECT_EQ(w, 7);
  EXPECT_EQ(m, 0);
  EXPECT_EQ(v, 0);
}

TEST(Kernels, FtrlGivesExactZerosUnderL1) {
  constexpr std::uint64_t kWidth = 37;
  std::vector<float> w(kWidth, 0), n(kWidth, 0.1F), z(kWidth, 0), gradient(kWidth);
  std::iota(gradient.begin(), gradient.end(), 0.0F);  // 0, 1/36, ... 1
  for (float& g : gradient) g /= 36;
  apply(optimizers::FTRL{.learning_rate = 0.1, .l1 = 0.5},
        Update<float>{w.data(), n.data(), z.data(), kWidth, nullptr, 0, 1, gradient.data(), 1});
  for (std::size_t i = 0; i < kWidth; ++i) {
    if (i <= 18) {
      EXPECT_EQ(w[i], 0) << i;
    } else {
      EXPECT_LT(w[i], 0) << i;
    }
  }
}

TEST(Kernels, FtrlPreservesAValueWithoutGradients) {
  std::vector<double> w{3, 3}, n{0, 0}, z{0, 0};
  const std::vector<double> gradient{0, 1};
  apply(optimizers::FTRL{.learning_rate = 0.5, .initial_accumulator = 0},
        Update<double>{w.data(), n.data(), z.data(), 2, nullptr, 0, 1, gradient.data(), 1});
  EXPECT_EQ(w[0], 3);
  EXPECT_EQ(w[1], 2.5);  // one step of Adagrad
}

TEST(Kernels, IntegersUseIntegralSteps) {
  std::vector<std::int64_t> w{10, 20, 30, 40};
  const std::vector<std::int64_t> gradient{-1, -2, 3, 4};
  const std::vector<std::uint32_t> rows{1, 0};
  apply(optimizers::SGD{1},
        Update<std::int64_t>{w.data(), nullptr, nullptr, 2, rows.data(), 0, 2, gradient.data(), 1});
  EXPECT_EQ(w, (std::vector<std::int64_t>{7, 16, 31, 42}));
}

TEST(Kernels, AcceptsAnUpdateWithoutRows) {
  std::vector<float> w{1, 2};
  apply(optimizers::SGD{1}, Update<float>{w.data(), nullptr, nullptr, 2, nullptr, 0, 0, nullptr, 1});
  EXPECT_EQ(w, (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace capstan::ps
