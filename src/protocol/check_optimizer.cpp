// check_optimizer.cpp -- the range of every parameter of every optimizer.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

#include "protocol/descriptor.hpp"

namespace capstan::protocol {
namespace {

/// Integer variables are updated in integer arithmetic, without slots.
void check_for_integers(const std::string& name, DType dtype, const Optimizer& o) {
  // The largest double below 2^63 is 2^63 - 1024.
  const double most = dtype == DType::int32 ? 0x1p31 - 1 : 0x1p63 - 1024;
  if (o.kind == OptimizerKind::sgd && o.schedule.kind == ScheduleKind::constant &&
      std::abs(o.learning_rate) <= most && o.learning_rate == std::round(o.learning_rate)) {
    return;
  }
  throw Error(
      Code::invalid_argument,
      fmt::format("variable \"{}\" is {} and cannot use {}; integers need SGD with an integer learning rate",
                  name, to_string(dtype), describe(o)));
}

/// Checks the requirements of a schedule that do not depend on the optimizer and the dtype.
void check_schedule(const std::string& name, const Schedule& s) {
  const auto refuse = [&](std::string_view parameter, const auto& value, std::string_view range) {
    throw Error(Code::invalid_argument,
                fmt::format("variable \"{}\": {} of the learning rate's schedule {} is {}, expected {}", name,
                            parameter, to_string(s.kind), value, range));
  };
  const auto expect = [&](std::string_view parameter, double value, bool in_range, std::string_view range) {
    if (!in_range || !std::isfinite(value)) refuse(parameter, value, range);
  };
  if (s.kind > ScheduleKind::piecewise_constant_decay) {
    refuse("the kind", static_cast<int>(s.kind), "0 to 5 (ScheduleKind)");
  }
  if (s.kind == ScheduleKind::piecewise_constant_decay) {
    if (s.values.size() != s.boundaries.size() + 1) {
      refuse("the number of values", s.values.size(), "one more than boundaries");
    }
    for (std::size_t i = 0; i < s.boundaries.size(); ++i) {
      expect("a boundary", s.boundaries[i], i == 0 || s.boundaries[i] > s.boundaries[i - 1],
             "a finite number above the previous boundary");
    }
    return;
  }
  if (s.kind == ScheduleKind::constant) return;
  expect("decay_steps", s.decay_steps, s.decay_steps > 0, "a number above 0");
  expect("decay_rate", s.decay_rate, s.decay_rate >= 0, "a number of 0 or more");
  expect("power", s.power, s.power >= 0, "a number of 0 or more");
  expect("warmup_steps", s.warmup_steps, s.warmup_steps >= 0, "a number of 0 or more");
}

/// Returns the extreme rates that the schedule can reach, except the initial one: if these are valid, all
/// are.
std::vector<double> further_rates(const Optimizer& o) {
  const Schedule& s = o.schedule;
  switch (s.kind) {
    case ScheduleKind::polynomial_decay:
      return {s.end};
    case ScheduleKind::cosine_decay:
      if (s.warmup_target) return {*s.warmup_target, *s.warmup_target * s.end};
      return {o.learning_rate * s.end};
    case ScheduleKind::exponential_decay:
      return {s.decay_rate < 1
                  ? 0
                  : o.learning_rate};  // a decaying rate underflows to 0; a growing one is not bounded
    case ScheduleKind::piecewise_constant_decay:
      return s.values;
    default:
      return {};  // these rates never grow
  }
}

}  // namespace

void check_optimizer(const std::string& name, DType dtype, const Optimizer& o) {
  if (dtype == DType::int32 || dtype == DType::int64) return check_for_integers(name, dtype, o);
  // Update rules compute in the dtype of the slots, in which parameters above `most` would be infinite.
  const DType computed = slot_dtype(dtype);
  const bool is_double = computed == DType::float64;
  const double most = is_double ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  const double least_normal =
      is_double ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
  const auto expect = [&](std::string_view parameter, double value, bool in_range, std::string_view range) {
    if (in_range && std::abs(value) <= most) return;
    throw Error(Code::invalid_argument,
                fmt::format("variable \"{}\": {} of optimizer {} is {}, expected {} that {} can hold", name,
                            parameter, to_string(o.kind), value, range,
                            to_string(is_double ? DType::float64 : DType::float32)));
  };
  const auto finite = [&](std::string_view parameter, double value) {
    expect(parameter, value, true, "a finite number");
  };
  const auto not_negative = [&](std::string_view parameter, double value) {
    expect(parameter, value, value >= 0, "a number of 0 or more");
  };
  const auto fraction = [&](std::string_view parameter, double value) {
    expect(parameter, value, value >= 0 && value <= 1, "a number from 0 to 1");
  };
  const auto decay = [&](std::string_view parameter, double value) {
    expect(parameter, value, value >= 0 && value < 1, "a number in [0, 1)");
  };
  check_schedule(name, o.schedule);
  const auto rates = [&](const auto& check) {
    check("learning_rate", o.learning_rate);
    for (const double rate : further_rates(o)) check("a learning rate of the schedule", rate);
  };
  switch (o.kind) {
    case OptimizerKind::sgd:
      return rates(finite);
    case OptimizerKind::momentum:
      rates(finite);
      return fraction("momentum", o.momentum);
    case OptimizerKind::adagrad:
      rates(finite);
      not_negative("initial_accumulator", o.initial_accumulator);
      return not_negative("epsilon", o.epsilon);
    case OptimizerKind::rmsprop:
      rates(finite);
      fraction("rho", o.rho);
      return not_negative("epsilon", o.epsilon);
    case OptimizerKind::adamw:
      not_negative("weight_decay", o.weight_decay);
      [[fallthrough]];
    case OptimizerKind::adam:
      rates(finite);
      decay("beta1", o.beta1);
      decay("beta2", o.beta2);
      return not_negative("epsilon", o.epsilon);
    case OptimizerKind::ftrl:
      rates([&](std::string_view parameter, double rate) {  // FTRL divides by the rate
        expect(parameter, rate, rate >= least_normal, "a number above 0");
      });
      expect("learning_rate_power", o.learning_rate_power, o.learning_rate_power <= 0,
             "a number of 0 or less");
      not_negative("initial_accumulator", o.initial_accumulator);
      not_negative("l1", o.l1);
      not_negative("l2", o.l2);
      not_negative("l2_shrinkage", o.l2_shrinkage);
      return not_negative("beta", o.beta);
  }
  throw Error(Code::invalid_argument,
              fmt::format("variable \"{}\": found an optimizer of kind {}, expected 1 to {} (OptimizerKind)",
                          name, static_cast<int>(o.kind), static_cast<int>(OptimizerKind::ftrl)));
}

}  // namespace capstan::protocol
