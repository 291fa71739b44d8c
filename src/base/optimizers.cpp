// optimizers.cpp -- names of optimizers and schedules, and the learning rate after a number of steps.
#include "capstan/optimizers.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace capstan {

std::string_view to_string(OptimizerKind kind) noexcept {
  switch (kind) {
    case OptimizerKind::sgd:
      return "sgd";
    case OptimizerKind::adagrad:
      return "adagrad";
    case OptimizerKind::adam:
      return "adam";
    case OptimizerKind::momentum:
      return "momentum";
    case OptimizerKind::rmsprop:
      return "rmsprop";
    case OptimizerKind::adamw:
      return "adamw";
    case OptimizerKind::ftrl:
      return "ftrl";
  }
  return "unknown optimizer";
}

std::string_view to_string(ScheduleKind kind) noexcept {
  switch (kind) {
    case ScheduleKind::constant:
      return "constant";
    case ScheduleKind::exponential_decay:
      return "exponential_decay";
    case ScheduleKind::inverse_time_decay:
      return "inverse_time_decay";
    case ScheduleKind::polynomial_decay:
      return "polynomial_decay";
    case ScheduleKind::cosine_decay:
      return "cosine_decay";
    case ScheduleKind::piecewise_constant_decay:
      return "piecewise_constant_decay";
  }
  return "unknown schedule";
}

namespace {

double polynomial_decay(double initial, const Schedule& s, double step) {
  double decay_steps = s.decay_steps;
  if (s.cycle) decay_steps *= std::max(1.0, std::ceil(step / decay_steps));
  const double remaining = 1 - std::min(step, decay_steps) / decay_steps;
  return (initial - s.end) * std::pow(remaining, s.power) + s.end;
}

double cosine_decay(double initial, const Schedule& s, double step) {
  const double warmup_steps = s.warmup_target ? s.warmup_steps : 0;
  const double from = s.warmup_target.value_or(initial);
  if (step < warmup_steps) return initial + (from - initial) * step / warmup_steps;
  const double share = std::min(step - warmup_steps, s.decay_steps) / s.decay_steps;
  return from * ((1 - s.end) * (1 + std::cos(std::numbers::pi * share)) / 2 + s.end);
}

}  // namespace

double learning_rate_after(std::int64_t steps, const Optimizer& optimizer) noexcept {
  const Schedule& s = optimizer.schedule;
  const auto step = static_cast<double>(steps);
  const double decays = s.staircase ? std::floor(step / s.decay_steps) : step / s.decay_steps;
  switch (s.kind) {
    case ScheduleKind::constant:
      break;
    case ScheduleKind::exponential_decay:
      return optimizer.learning_rate * std::pow(s.decay_rate, decays);
    case ScheduleKind::inverse_time_decay:
      return optimizer.learning_rate / (1 + s.decay_rate * decays);
    case ScheduleKind::polynomial_decay:
      return polynomial_decay(optimizer.learning_rate, s, step);
    case ScheduleKind::cosine_decay:
      return cosine_decay(optimizer.learning_rate, s, step);
    case ScheduleKind::piecewise_constant_decay: {
      const auto piece = std::lower_bound(s.boundaries.begin(), s.boundaries.end(), step);
      return s.values[static_cast<std::size_t>(piece - s.boundaries.begin())];
    }
  }
  return optimizer.learning_rate;
}

}  // namespace capstan
