// first_step.hpp -- expected first update of SGD or Adam, to verify the benchmarks' results.
#pragma once

#include <cmath>

#include "capstan/optimizers.hpp"

namespace capstan::perf {

/// Returns the decrease of a value. `gradient` is the sum of its gradients in the push. Adam has beta_1 0.9,
/// beta_2 0.999, zero slots and the bias correction of tf.keras: the step is nearly the learning rate.
inline double first_step(const Optimizer& o, double gradient) {
  if (o.kind == OptimizerKind::sgd) return o.learning_rate * gradient;
  const double rate = o.learning_rate * std::sqrt(1 - 0.999) / (1 - 0.9);
  return rate * 0.1 * gradient / (std::sqrt(0.001 * gradient * gradient) + o.epsilon);
}

/// Returns true if the step takes `before` to `after`, in float.
inline bool is_after_first_step(const Optimizer& o, double gradient, float before, float after) {
  const double expected = static_cast<double>(before) - first_step(o, gradient);
  return std::abs(static_cast<double>(after) - expected) < 1e-4 * (1 + std::abs(gradient));
}

}  // namespace capstan::perf
