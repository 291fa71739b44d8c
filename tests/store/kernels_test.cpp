// kernels_test.cpp -- every optimizer against a scalar version in double, sparse and dense, odd widths.
#include "store/kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace capstan::store {
namespace {

struct Plain {
  double w, s0, s1;
};

/// The update rules of optimizers.hpp, one element at a time.
void reference(const Optimizer& o, Plain& x, double g, std::int64_t t) {
  switch (o.kind) {
    case OptimizerKind::sgd:
      x.w -= o.learning_rate * g;
      return;
    case OptimizerKind::adagrad:
      x.s0 += g * g;
      x.w -= o.learning_rate * g / (std::sqrt(x.s0) + o.epsilon);
      return;
    case OptimizerKind::adam:
      x.s0 = o.beta1 * x.s0 + (1 - o.beta1) * g;
      x.s1 = o.beta2 * x.s1 + (1 - o.beta2) * g * g;
      x.w -= o.learning_rate * std::sqrt(1 - std::pow(o.beta2, static_cast<double>(t))) /
             (1 - std::pow(o.beta1, static_cast<double>(t))) * x.s0 / (std::sqrt(x.s1) + o.epsilon);
      return;
  }
}

template <class T>
void check(const Optimizer& o, std::uint64_t width, double tolerance) {
  constexpr std::uint64_t kRows = 20;
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::vector<T> w(kRows * width), s0(w.size()), s1(w.size());
  std::vector<Plain> expected(w.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    w[i] = static_cast<T>(normal(random));
    s0[i] = static_cast<T>(o.kind == OptimizerKind::adagrad ? o.initial_accumulator : 0);
    expected[i] = {static_cast<double>(w[i]), static_cast<double>(s0[i]), 0};
  }
  std::vector<std::uint32_t> order(kRows);
  std::iota(order.begin(), order.end(), 0U);
  for (std::int64_t step = 1; step <= 5; ++step) {
    const bool dense = step == 3;
    std::shuffle(order.begin(), order.end(), random);
    const std::uint64_t count = dense ? kRows : 9;
    std::vector<T> gradient(count * width);
    for (T& g : gradient) g = static_cast<T>(normal(random));
    apply(o, Update<T>{w.data(), s0.data(), s1.data(), width, dense ? nullptr : order.data(), 0, count,
                       gradient.data(), step});
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t row = dense ? i : order[i];
      for (std::uint64_t j = 0; j < width; ++j) {
        reference(o, expected[row * width + j], static_cast<double>(gradient[i * width + j]), step);
      }
    }
  }
  for (std::size_t i = 0; i < w.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(w[i]), expected[i].w, tolerance)
        << to_string(o.kind) << " width " << width;
    if (o.kind != OptimizerKind::sgd) {
      ASSERT_NEAR(static_cast<double>(s0[i]), expected[i].s0, tolerance);
    }
  }
}

TEST(Kernels, AgreeWithTheScalarRules) {
  const Optimizer all[] = {
      optimizers::SGD{0.1}, optimizers::Adagrad{.learning_rate = 0.1},
      optimizers::Adagrad{.learning_rate = 0.1, .initial_accumulator = 0, .epsilon = 1e-10},
      optimizers::Adam{.learning_rate = 0.01}};
  for (const Optimizer& o : all) {
    for (const std::uint64_t width : {1, 2, 3, 7, 8, 15, 16, 17, 31, 64, 100, 256}) {
      check<float>(o, width, 2e-5);
      check<double>(o, width, 1e-12);
    }
  }
}

TEST(Kernels, IntegersTakeWholeSteps) {
  std::vector<std::int64_t> w{10, 20, 30, 40};
  const std::vector<std::int64_t> gradient{-1, -2, 3, 4};
  const std::vector<std::uint32_t> rows{1, 0};
  apply(optimizers::SGD{1},
        Update<std::int64_t>{w.data(), nullptr, nullptr, 2, rows.data(), 0, 2, gradient.data(), 1});
  EXPECT_EQ(w, (std::vector<std::int64_t>{7, 16, 31, 42}));
}

TEST(Kernels, NoRowsAreNoUpdate) {
  std::vector<float> w{1, 2};
  apply(optimizers::SGD{1}, Update<float>{w.data(), nullptr, nullptr, 2, nullptr, 0, 0, nullptr, 1});
  EXPECT_EQ(w, (std::vector<float>{1, 2}));
}

}  // namespace
}  // namespace capstan::store
