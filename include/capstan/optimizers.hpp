// optimizers.hpp -- optimizers, which a ps applies to gradients, and learning-rate schedules. Chosen per
// variable, applied where the shard is stored.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "capstan/detail/export.hpp"

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

/// Sent over the wire and stored: add at the end, never renumber.
enum class ScheduleKind : std::uint8_t {
  constant = 0,
  exponential_decay = 1,
  inverse_time_decay = 2,
  polynomial_decay = 3,
  cosine_decay = 4,
  piecewise_constant_decay = 5
};

CAPSTAN_API std::string_view to_string(ScheduleKind kind) noexcept;

/// Wire format of a learning-rate schedule over the update steps of a shard; the structs of `schedules`
/// document the fields. A kind ignores fields that it does not use.
struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double decay_steps = 1;
  double decay_rate = 1;
  bool staircase = false;
  double end = 0;
  double power = 1;
  bool cycle = false;
  double warmup_steps = 0;
  std::optional<double> warmup_target = {};
  std::vector<double> boundaries = {};
  std::vector<double> values = {};
};

/// A constant rate, or one of the structs of `schedules`.
struct LearningRate {
  LearningRate(double rate) : initial(rate) {}  // NOLINT(google-explicit-constructor)
  LearningRate(double first, Schedule then) : initial(first), schedule(std::move(then)) {}
  double initial;
  Schedule schedule;
};

/// Learning rates as functions of s, the number of update steps that the shard has applied before, from 0 on
/// (each shard counts the pushes that name its rows). The ps computes the rate. Names and formulas are
/// those of tf.keras.optimizers.schedules.
///
/// Creating a variable throws Error(invalid_argument) for a parameter that is not finite or out of range:
/// decay_steps must be above 0; decay_rate, power and warmup_steps at least 0; boundaries ascending. An
/// integer variable accepts only a constant rate. FTRL accepts no rate that decays to 0, such as
/// ExponentialDecay.
namespace schedules {

/// initial decay_rate^(s / decay_steps); with staircase, s / decay_steps is rounded down.
struct ExponentialDecay {
  double initial_learning_rate = 0.01;
  double decay_steps = 1;
  double decay_rate = 1;
  bool staircase = false;
  operator LearningRate() const {
    return {initial_learning_rate,
            {.kind = ScheduleKind::exponential_decay,
             .decay_steps = decay_steps,
             .decay_rate = decay_rate,
             .staircase = staircase}};
  }
};

/// initial / (1 + decay_rate s / decay_steps); with staircase, s / decay_steps is rounded down.
struct InverseTimeDecay {
  double initial_learning_rate = 0.01;
  double decay_steps = 1;
  double decay_rate = 1;
  bool staircase = false;
  operator LearningRate() const {
    return {initial_learning_rate,
            {.kind = ScheduleKind::inverse_time_decay,
             .decay_steps = decay_steps,
             .decay_rate = decay_rate,
             .staircase = staircase}};
  }
};

/// (initial - end) (1 - min(s, decay_steps) / decay_steps)^power + end. With cycle, decay_steps is multiplied
/// by the smallest integer of at least 1 that makes it at least s.
struct PolynomialDecay {
  double initial_learning_rate = 0.01;
  double decay_steps = 1;
  double end_learning_rate = 0.0001;
  double power = 1;
  bool cycle = false;
  operator LearningRate() const {
    return {initial_learning_rate,
            {.kind = ScheduleKind::polynomial_decay,
             .decay_steps = decay_steps,
             .end = end_learning_rate,
             .power = power,
             .cycle = cycle}};
  }
};

/// initial ((1 - alpha) (1 + cos(pi min(s, decay_steps) / decay_steps)) / 2 + alpha) (Loshchilov, Hutter
/// 2017). With a warmup_target, the rate first changes linearly from initial to the target within
/// warmup_steps, then decays from the target, with s counted from the end of the warm-up.
struct CosineDecay {
  double initial_learning_rate = 0.01;
  double decay_steps = 1;
  double alpha = 0;
  std::optional<double> warmup_target = {};
  double warmup_steps = 0;
  operator LearningRate() const {
    return {initial_learning_rate,
            {.kind = ScheduleKind::cosine_decay,
             .decay_steps = decay_steps,
             .end = alpha,
             .warmup_steps = warmup_steps,
             .warmup_target = warmup_target}};
  }
};

/// values[0] while s <= boundaries[0], values[1] while s <= boundaries[1], ..., then the last value: there is
/// one more value than boundaries.
struct PiecewiseConstantDecay {
  std::vector<double> boundaries;
  std::vector<double> values;
  operator LearningRate() const {
    return {values.empty() ? 0 : values.front(),
            {.kind = ScheduleKind::piecewise_constant_decay, .boundaries = boundaries, .values = values}};
  }
};

}  // namespace schedules

/// Wire format of any optimizer. A kind ignores fields that it does not use.
struct Optimizer {
  OptimizerKind kind = OptimizerKind::sgd;
  double learning_rate = 0.01;  ///< initial rate of the schedule
  Schedule schedule = {};
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

/// Learning rate of the update that follows `steps` updates. REQUIRES: an optimizer that is valid for
/// creating a variable.
CAPSTAN_API double learning_rate_after(std::int64_t steps, const Optimizer& optimizer) noexcept;

/// Update rules, with w the value and g the gradient of one element; every other letter is a slot, stored
/// beside w and initially 0 unless stated otherwise. A sparse push changes only the rows that it names;
/// rows named twice in one push count once, with the sum of their gradients.
///
/// Creating a variable throws Error(invalid_argument) for a parameter that is not finite in the arithmetic of
/// the rule (float; double for double variables) or out of range: momentum and rho in [0, 1], beta1 and beta2
/// in [0, 1), learning_rate_power at most 0, all others except the learning rate at least 0, and FTRL's
/// learning rate above 0. A negative learning rate performs gradient ascent.
namespace optimizers {

/// w -= learning_rate g
struct SGD {
  LearningRate learning_rate = 0.01;
  operator Optimizer() const {
    return {.kind = OptimizerKind::sgd,
            .learning_rate = learning_rate.initial,
            .schedule = learning_rate.schedule};
  }
};

/// v = momentum v - learning_rate g;  w += v       (Polyak 1964)
/// With nesterov:  w += momentum v - learning_rate g       (Sutskever et al. 2013, in the form of Keras)
/// A row that a push does not name keeps its velocity and does not move.
struct Momentum {
  LearningRate learning_rate = 0.01;
  double momentum = 0.9;
  bool nesterov = false;
  operator Optimizer() const {
    return {.kind = OptimizerKind::momentum,
            .learning_rate = learning_rate.initial,
            .schedule = learning_rate.schedule,
            .momentum = momentum,
            .nesterov = nesterov};
  }
};

/// a += g^2;  w -= learning_rate g / (sqrt(a) + epsilon)       (Duchi, Hazan, Singer 2011; defaults of Keras)
/// a starts at initial_accumulator.
struct Adagrad {
  LearningRate learning_rate = 0.001;
  double initial_accumulator = 0.1;
  double epsilon = 1e-7;
  operator Optimizer() const {
    return {.kind = OptimizerKind::adagrad,
            .learning_rate = learning_rate.initial,
            .schedule = learning_rate.schedule,
            .initial_accumulator = initial_accumulator,
            .epsilon = epsilon};
  }
};

/// a = rho a + (1-rho) g^2;  w -= learning_rate g / sqrt(a + epsilon)       (Hinton 2012; form and defaults
/// of Keras, without Keras's parameters momentum and centered)
struct RMSProp {
  LearningRate learning_rate = 0.001;
  double rho = 0.9;
  double epsilon = 1e-7;
  operator Optimizer() const {
    return {.kind = OptimizerKind::rmsprop,
            .learning_rate = learning_rate.initial,
            .schedule = learning_rate.schedule,
            .epsilon = epsilon,
            .rho = rho};
  }
};

/// m = beta1 m + (1-beta1) g;  v = beta2 v + (1-beta2) g^2;
/// w -= learning_rate sqrt(1-beta2^t)/(1-beta1^t) m / (sqrt(v) + epsilon)       (Kingma, Ba 2015)
/// t counts the pushes that the shard has applied. Rows that a sparse push does not name keep m and v ("lazy
/// Adam"), so a push costs only the rows that it names.
struct Adam {
  LearningRate learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-7;
  operator Optimizer() const {
    return {.kind = OptimizerKind::adam,
            .learning_rate = learning_rate.initial,
            .schedule = learning_rate.schedule,
            .beta1 = beta1,
            .beta2 = beta2,
            .epsilon = epsilon};
  }
};

/// w -= learning_rate weight_decay w, then Adam's rule       (Loshchilov, Hutter 2019; defaults of Keras)
/// Rows that a sparse push does not name do not decay.
struct AdamW {
  LearningRate learning_rate = 0.001;
  double weight_decay = 0.004;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-7;
  operator Optimizer() const {
    return {.kind = OptimizerKind::adamw,
            .learning_rate = learning_rate.initial,
            .schedule = learning_rate.schedule,
            .beta1 = beta1,
            .beta2 = beta2,
            .epsilon = epsilon,
            .weight_decay = weight_decay};
  }
};

/// n' = n + g^2;  z += g + 2 l2_shrinkage w - (n'^p - n^p) / learning_rate w   with p = -learning_rate_power;
/// w = 0 where |z| <= l1, else (sign(z) l1 - z) / ((beta + n'^p) / learning_rate + 2 l2);  n = n' (McMahan et
/// al. 2013; form and defaults of Keras). n starts at initial_accumulator. Unless that is 0, the initial
/// values of a row are soon forgotten. While the divisor is 0, because all gradients were 0, w does not
/// change. Updates with a learning_rate_power other than -0.5 take many times longer.
struct FTRL {
  LearningRate learning_rate = 0.001;
  double learning_rate_power = -0.5;
  double initial_accumulator = 0.1;
  double l1 = 0;
  double l2 = 0;
  double l2_shrinkage = 0;
  double beta = 0;
  operator Optimizer() const {
    return {.kind = OptimizerKind::ftrl,
            .learning_rate = learning_rate.initial,
            .schedule = learning_rate.schedule,
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
