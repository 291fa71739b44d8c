// first_step.hpp -- what the first push of SGD or Adam takes from a value, which the benchmarks' answers are
// held against.
#pragma once

#include <cmath>

#include "capstan/optimizers.hpp"

namespace capstan::perf {

/// `gradient` is the sum of all that the push says of the value. Adam with beta_1 of 0.9 and beta_2 of 0.999,
/// from slots of zeros, as tf.keras corrects its bias: nearly the learning rate.
inline double first_step(const Optimizer& o, double gradient) {
  if (o.kind == OptimizerKind::sgd) return o.learning_rate * gradient;
  const double rate = o.learning_rate * std::sqrt(1 - 0.999) / (1 - 0.9);
  return rate * 0.1 * gradient / (std::sqrt(0.001 * gradient * gradient) + o.epsilon);
}

/// Whether `after` is what the step leaves of `before`, in float.
inline bool is_first_step(const Optimizer& o, double gradient, float before, float after) {
  const double wanted = static_cast<double>(before) - first_step(o, gradient);
  return std::abs(static_cast<double>(after) - wanted) < 1e-4 * (1 + std::abs(gradient));
}

}  // namespace capstan::perf
