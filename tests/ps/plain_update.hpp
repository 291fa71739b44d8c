// plain_update.hpp -- reference implementation of the update rules in double, one element at a time.
#pragma once

#include <cmath>
#include <cstdint>

#include "capstan/optimizers.hpp"

namespace capstan::ps {

/// One element of a variable, with its slots.
struct PlainElement {
  double w, s0, s1;
};

inline void plain_adam(const Optimizer& o, PlainElement& x, double g, std::int64_t step) {
  const double t = static_cast<double>(step);
  x.s0 = o.beta1 * x.s0 + (1 - o.beta1) * g;
  x.s1 = o.beta2 * x.s1 + (1 - o.beta2) * g * g;
  const double m = x.s0 / (1 - std::pow(o.beta1, t));
  const double root = std::sqrt(x.s1 / (1 - std::pow(o.beta2, t)));
  x.w -= o.learning_rate * m / (root + o.epsilon / std::sqrt(1 - std::pow(o.beta2, t)));
}

/// As in McMahan's paper, with n^p in place of the square root.
inline void plain_ftrl(const Optimizer& o, PlainElement& x, double g) {
  const double p = -o.learning_rate_power;
  const double sigma = (std::pow(x.s0 + g * g, p) - std::pow(x.s0, p)) / o.learning_rate;
  x.s0 += g * g;
  x.s1 += g + 2 * o.l2_shrinkage * x.w - sigma * x.w;
  const double divisor = (o.beta + std::pow(x.s0, p)) / o.learning_rate + 2 * o.l2;
  if (divisor == 0) return;
  const double sign = x.s1 < 0 ? -1 : 1;
  x.w = std::abs(x.s1) <= o.l1 ? 0 : (sign * o.l1 - x.s1) / divisor;
}

/// The update rules of optimizers.hpp, one element at a time.
inline void plain_update(const Optimizer& o, PlainElement& x, double g, std::int64_t t) {
  switch (o.kind) {
    case OptimizerKind::sgd:
      x.w -= o.learning_rate * g;
      return;
    case OptimizerKind::adagrad:
      x.s0 += g * g;
      x.w -= o.learning_rate * g / (std::sqrt(x.s0) + o.epsilon);
      return;
    case OptimizerKind::adam:
      return plain_adam(o, x, g, t);
    case OptimizerKind::adamw:
      x.w -= o.learning_rate * o.weight_decay * x.w;
      return plain_adam(o, x, g, t);
    case OptimizerKind::momentum:
      x.s0 = o.momentum * x.s0 - o.learning_rate * g;
      x.w += o.nesterov ? o.momentum * x.s0 - o.learning_rate * g : x.s0;
      return;
    case OptimizerKind::rmsprop:
      x.s0 = o.rho * x.s0 + (1 - o.rho) * g * g;
      x.w -= o.learning_rate * g / std::sqrt(x.s0 + o.epsilon);
      return;
    case OptimizerKind::ftrl:
      return plain_ftrl(o, x, g);
  }
}

}  // namespace capstan::ps
