// optimizers.hpp -- what a ps does with a gradient. Chosen per variable, applied where the shard lies.
#pragma once

#include <cstdint>
#include <string_view>

namespace capstan {

/// Sent over the wire and stored in checkpoints: add at the end, never renumber.
enum class OptimizerKind : std::uint8_t { sgd = 1, adagrad = 2, adam = 3 };

std::string_view to_string(OptimizerKind kind) noexcept;

/// Any optimizer, as it travels. Fields that a kind has no use for are ignored.
struct Optimizer {
  OptimizerKind kind = OptimizerKind::sgd;
  double learning_rate = 0.01;
  double initial_accumulator = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-7;
};

/// Update rules, with w the value and g the gradient of one element. A sparse push touches the rows it names
/// and no others; rows named twice in one push count as one with the sum of their gradients.
namespace optimizers {

/// w -= learning_rate g
struct SGD {
  double learning_rate = 0.01;
  operator Optimizer() const { return {OptimizerKind::sgd, learning_rate, 0, 0, 0, 0}; }
};

/// a += g^2;  w -= learning_rate g / (sqrt(a) + epsilon)       (Duchi, Hazan, Singer 2011; defaults of Keras)
struct Adagrad {
  double learning_rate = 0.001;
  double initial_accumulator = 0.1;
  double epsilon = 1e-7;
  operator Optimizer() const {
    return {OptimizerKind::adagrad, learning_rate, initial_accumulator, 0, 0, epsilon};
  }
};

/// m = beta1 m + (1-beta1) g;  v = beta2 v + (1-beta2) g^2;
/// w -= learning_rate sqrt(1-beta2^t)/(1-beta1^t) m / (sqrt(v) + epsilon)       (Kingma, Ba 2015)
/// t counts the pushes that the shard has seen. Rows that a sparse push does not name keep m and v as they
/// are
/// ("lazy Adam"), so a push costs what it touches.
struct Adam {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-7;
  operator Optimizer() const { return {OptimizerKind::adam, learning_rate, 0, beta1, beta2, epsilon}; }
};

}  // namespace optimizers
}  // namespace capstan
