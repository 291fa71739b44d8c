// optimizers.hpp -- what a ps does with a gradient. Chosen per variable, applied where the shard lies.
#pragma once

#include <cstdint>
#include <string_view>

#include "capstan/export.hpp"

namespace capstan {

/// Sent over the wire and stored in checkpoints: add at the end, never renumber.
enum class OptimizerKind : std::uint8_t {
  sgd = 1,
  adagrad = 2,
  adam = 3,
  momentum = 4,
  rmsprop = 5,
  adamw = 6,
  ftrl = 7
};

CAPSTAN_API std::string_view to_string(OptimizerKind kind) noexcept;

/// Any optimizer, as it travels. Fields that a kind has no use for are ignored.
struct Optimizer {
  OptimizerKind kind = OptimizerKind::sgd;
  double learning_rate = 0.01;
  double initial_accumulator = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-7;
  double momentum = 0.9;
  bool nesterov = false;
  double rho = 0.9;
  double weight_decay = 0.004;
  double learning_rate_power = -0.5;
  double l1 = 0;
  double l2 = 0;
  double l2_shrinkage = 0;
  double beta = 0;
};

/// Update rules, with w the value and g the gradient of one element; every other letter is a slot, kept
/// beside w and 0 at first unless the rule says otherwise. A sparse push touches the rows it names and no
/// others; rows named twice in one push count as one with the sum of their gradients.
///
/// The creation of a variable throws Error(invalid_argument) for a parameter that is not finite in the
/// arithmetic of the rule (float, of double variables double) or out of range: momentum and rho are from 0 to
/// 1, beta1 and beta2 from 0 to below 1, learning_rate_power is at most 0, all others but the learning rate
/// are at least 0, and FTRL's learning rate is above 0. A negative learning rate ascends.
namespace optimizers {

/// w -= learning_rate g
struct SGD {
  double learning_rate = 0.01;
  operator Optimizer() const { return {.kind = OptimizerKind::sgd, .learning_rate = learning_rate}; }
};

/// v = momentum v - learning_rate g;  w += v       (Polyak 1964)
/// With nesterov:  w += momentum v - learning_rate g       (Sutskever et al. 2013, in the form of Keras)
/// A row keeps its velocity, and does not move, while pushes do not name it.
struct Momentum {
  double learning_rate = 0.01;
  double momentum = 0.9;
  bool nesterov = false;
  operator Optimizer() const {
    return {.kind = OptimizerKind::momentum,
            .learning_rate = learning_rate,
            .momentum = momentum,
            .nesterov = nesterov};
  }
};

/// a += g^2;  w -= learning_rate g / (sqrt(a) + epsilon)       (Duchi, Hazan, Singer 2011; defaults of Keras)
/// a starts at initial_accumulator.
struct Adagrad {
  double learning_rate = 0.001;
  double initial_accumulator = 0.1;
  double epsilon = 1e-7;
  operator Optimizer() const {
    return {.kind = OptimizerKind::adagrad,
            .learning_rate = learning_rate,
            .initial_accumulator = initial_accumulator,
            .epsilon = epsilon};
  }
};

/// a = rho a + (1-rho) g^2;  w -= learning_rate g / sqrt(a + epsilon)       (Hinton 2012; form and defaults
/// of Keras, without its momentum and centered)
struct RMSProp {
  double learning_rate = 0.001;
  double rho = 0.9;
  double epsilon = 1e-7;
  operator Optimizer() const {
    return {.kind = OptimizerKind::rmsprop, .learning_rate = learning_rate, .epsilon = epsilon, .rho = rho};
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
  operator Optimizer() const {
    return {.kind = OptimizerKind::adam,
            .learning_rate = learning_rate,
            .beta1 = beta1,
            .beta2 = beta2,
            .epsilon = epsilon};
  }
};

/// w -= learning_rate weight_decay w, then Adam's rule       (Loshchilov, Hutter 2019; defaults of Keras)
/// Rows that a sparse push does not name do not decay.
struct AdamW {
  double learning_rate = 0.001;
  double weight_decay = 0.004;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-7;
  operator Optimizer() const {
    return {.kind = OptimizerKind::adamw,
            .learning_rate = learning_rate,
            .beta1 = beta1,
            .beta2 = beta2,
            .epsilon = epsilon,
            .weight_decay = weight_decay};
  }
};

/// n' = n + g^2;  z += g + 2 l2_shrinkage w - (n'^p - n^p) / learning_rate w   with p = -learning_rate_power;
/// w = 0 where |z| <= l1, else (sign(z) l1 - z) / ((beta + n'^p) / learning_rate + 2 l2);  n = n'
/// (McMahan et al. 2013; form and defaults of Keras)
/// n starts at initial_accumulator. The first values of a row are soon forgotten unless that is 0; where the
/// divisor is 0, for want of any gradient, w stays. A learning_rate_power other than -0.5 is many times
/// slower.
struct FTRL {
  double learning_rate = 0.001;
  double learning_rate_power = -0.5;
  double initial_accumulator = 0.1;
  double l1 = 0;
  double l2 = 0;
  double l2_shrinkage = 0;
  double beta = 0;
  operator Optimizer() const {
    return {.kind = OptimizerKind::ftrl,
            .learning_rate = learning_rate,
            .initial_accumulator = initial_accumulator,
            .learning_rate_power = learning_rate_power,
            .l1 = l1,
            .l2 = l2,
            .l2_shrinkage = l2_shrinkage,
            .beta = beta};
  }
};

}  // namespace optimizers
}  // namespace capstan
