// check_optimizer.cpp -- the range of every parameter of every optimizer.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "protocol/descriptor.hpp"

namespace capstan::protocol {
namespace {

/// Integers are updated in their own arithmetic, without slots.
void check_for_integers(const std::string& name, DType dtype, const Optimizer& o) {
  // The largest double below 2^63 is 2^63 - 1024.
  const double most = dtype == DType::int32 ? 0x1p31 - 1 : 0x1p63 - 1024;
  if (o.kind == OptimizerKind::sgd && std::abs(o.learning_rate) <= most &&
      o.learning_rate == std::round(o.learning_rate)) {
    return;
  }
  throw Error(
      Code::invalid_argument,
      fmt::format("variable \"{}\" is {} and cannot use {}: integers take SGD with a whole learning rate",
                  name, to_string(dtype), describe(o)));
}

}  // namespace

void check_optimizer(const std::string& name, DType dtype, const Optimizer& o) {
  if (dtype == DType::int32 || dtype == DType::int64) return check_for_integers(name, dtype, o);
  // Rules are applied in the dtype of the slots, where a larger number is infinite.
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
    expect(parameter, value, value >= 0 && value < 1, "a number from 0 to 1, without 1,");
  };
  switch (o.kind) {
    case OptimizerKind::sgd:
      return finite("learning_rate", o.learning_rate);
    case OptimizerKind::momentum:
      finite("learning_rate", o.learning_rate);
      return fraction("momentum", o.momentum);
    case OptimizerKind::adagrad:
      finite("learning_rate", o.learning_rate);
      not_negative("initial_accumulator", o.initial_accumulator);
      return not_negative("epsilon", o.epsilon);
    case OptimizerKind::rmsprop:
      finite("learning_rate", o.learning_rate);
      fraction("rho", o.rho);
      return not_negative("epsilon", o.epsilon);
    case OptimizerKind::adamw:
      not_negative("weight_decay", o.weight_decay);
      [[fallthrough]];
    case OptimizerKind::adam:
      finite("learning_rate", o.learning_rate);
      decay("beta1", o.beta1);
      decay("beta2", o.beta2);
      return not_negative("epsilon", o.epsilon);
    case OptimizerKind::ftrl:
      // It is divided by.
      expect("learning_rate", o.learning_rate, o.learning_rate >= least_normal, "a number above 0");
      expect("learning_rate_power", o.learning_rate_power, o.learning_rate_power <= 0,
             "a number of 0 or less");
      not_negative("initial_accumulator", o.initial_accumulator);
      not_negative("l1", o.l1);
      not_negative("l2", o.l2);
      not_negative("l2_shrinkage", o.l2_shrinkage);
      return not_negative("beta", o.beta);
  }
  throw Error(Code::invalid_argument,
              fmt::format("variable \"{}\": its optimizer is of kind {}, expected 1 to {} (OptimizerKind)",
                          name, static_cast<int>(o.kind), static_cast<int>(OptimizerKind::ftrl)));
}

}  // namespace capstan::protocol
