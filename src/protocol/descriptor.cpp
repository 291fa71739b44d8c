// descriptor.cpp -- checks and descriptions of variables and their optimizers.
#include "protocol/descriptor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "capstan/error.hpp"
#include "capstan/hash_key.hpp"
#include "protocol/int8_rows.hpp"

namespace capstan {

namespace protocol {

std::uint64_t rows_of(const std::vector<std::uint64_t>& shape) noexcept {
  return shape.empty() ? 1 : shape[0];
}

std::uint64_t width_of(const std::vector<std::uint64_t>& shape) noexcept {
  std::uint64_t width = 1;
  for (std::size_t axis = 1; axis < shape.size(); ++axis) width *= shape[axis];
  return width;
}

std::vector<std::uint64_t> stored_shape(const std::vector<std::uint64_t>& shape) {
  return shape.empty() ? std::vector<std::uint64_t>{1} : shape;
}

std::string describe_rows(std::uint64_t rows) {
  return rows == 0 ? "no rows" : fmt::format("rows 0 to {}", rows - 1);
}

Error no_such_row(std::int64_t id, std::size_t position, const std::string& variable, std::uint64_t rows) {
  return Error(Code::out_of_range, fmt::format("id {} at position {} is not in variable \"{}\", which has {}",
                                               id, position, variable, describe_rows(rows)));
}

DType slot_dtype(DType dtype) noexcept {
  return dtype == DType::float16 || dtype == DType::bfloat16 ? DType::float32 : dtype;
}

std::uint64_t stored_row_bytes(DType dtype, std::uint64_t width, const RowStorage& storage) noexcept {
  return storage.int8 ? int8_row_bytes(width) : width * size_of(dtype);
}

void check_int8_rows(const std::string& name, DType dtype, const std::vector<std::uint64_t>& shape,
                     ShardMemory memory) {
  const std::uint64_t width = width_of(shape);
  const auto refuse = [&](const std::string& found) {
    throw Error(Code::invalid_argument,
                fmt::format("variable or table \"{}\" has int8_rows: found {}; expected float32 rows of at "
                            "least {} elements in host memory",
                            name, found, kMinInt8Elements));
  };
  if (dtype != DType::float32) refuse(fmt::format("dtype {}", to_string(dtype)));
  if (memory != ShardMemory::host) refuse("memory of a GPU");
  if (width < kMinInt8Elements) {
    refuse(fmt::format("rows of {} {}, which would take {} bytes instead of {}", width,
                       width == 1 ? "element" : "elements", int8_row_bytes(width), width * sizeof(float)));
  }
}

void check_bytes(const std::string& name, DType dtype, const std::vector<std::uint64_t>& shape,
                 OptimizerKind optimizer) {
  constexpr auto kMaxBytes = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  // Bytes of one element, including its slots.
  std::uint64_t bytes = size_of(dtype) + slots_of(optimizer).size() * size_of(slot_dtype(dtype));
  bool fits = true;
  const bool is_empty = std::find(shape.begin(), shape.end(), 0U) != shape.end();
  for (const std::uint64_t size : shape) {
    fits = fits &&
           !__builtin_mul_overflow(bytes, is_empty ? std::max<std::uint64_t>(size, 1) : size, &bytes) &&
           bytes <= kMaxBytes;
  }
  if (fits) return;
  throw Error(
      Code::invalid_argument,
      fmt::format("variable \"{}\" of shape ({}), {}: found {} bytes per element, including optimizer "
                  "slots, expected less than 2^63 bytes in total; use a smaller shape",
                  name, fmt::join(shape, ", "), to_string(dtype),
                  size_of(dtype) + slots_of(optimizer).size() * size_of(slot_dtype(dtype))));
}

void check_shard_rows(const std::string& name, std::uint64_t shard, std::uint64_t rows,
                      std::uint64_t all_rows) {
  if (rows <= kMaxShardRows) return;
  throw Error(Code::invalid_argument,
              fmt::format("variable \"{}\": shard {} has {} of {} rows, expected at most {}; set a "
                          "variable_partitioner that creates at least {} shards",
                          name, shard, rows, all_rows, kMaxShardRows,
                          (all_rows + kMaxShardRows - 1) / kMaxShardRows));
}

namespace {

/// Checks the parameters of an initializer, except its requirements on the shape.
void check_numbers(const std::string& name, DType dtype, const Initializer& init) {
  const auto refuse = [&](const std::string& reason) {
    throw Error(Code::invalid_argument,
                fmt::format("variable \"{}\", {}: {}", name, to_string(dtype), reason));
  };
  const bool is_integer = dtype == DType::int32 || dtype == DType::int64;
  // Largest number of the dtype.
  const double most_real = dtype == DType::float64   ? std::numeric_limits<double>::max()
                           : dtype == DType::float16 ? 65504
                                                     : std::numeric_limits<float>::max();
  const auto is_real = [most_real](double number) { return std::abs(number) <= most_real; };
  // The largest double below 2^63 is 2^63 - 1024.
  const double least = dtype == DType::int32 ? -0x1p31 : -0x1p63;
  const double most = dtype == DType::int32 ? 0x1p31 - 1 : 0x1p63 - 1024;
  switch (init.kind) {
    case InitializerKind::constant:
      if (is_integer && !(init.a >= least && init.a <= most && init.a == std::floor(init.a))) {
        refuse(fmt::format("found constant({}), expected an integer from {} to {}", init.a, least, most));
      }
      return;
    case InitializerKind::uniform:
      if (!(init.a <= init.b) || !std::isfinite(init.b - init.a) ||
          (!is_integer && !(is_real(init.a) && is_real(init.b)))) {
        refuse(
            fmt::format("found uniform({}, {}), expected two finite numbers, the first not above the second",
                        init.a, init.b));
      }
      if (is_integer && !(init.a >= least && init.b <= most && std::ceil(init.a) < init.b)) {
        refuse(
            fmt::format("found uniform({}, {}), expected a range that contains integers, all from {} to {}",
                        init.a, init.b, least, most));
      }
      return;
    case InitializerKind::normal:
    case InitializerKind::truncated_normal:
      if (!is_real(init.a) || !(init.b >= 0) || !is_real(init.b)) {
        refuse(fmt::format(
            "found a mean of {} and a stddev of {}, expected finite numbers and a stddev of 0 or more",
            init.a, init.b));
      }
      return;
    case InitializerKind::orthogonal:
    case InitializerKind::identity:
      if (!is_real(init.a)) refuse(fmt::format("found a gain of {}, expected a finite number", init.a));
      return;
  }
  refuse(fmt::format("found an initializer of kind {}, expected 1 to {} (InitializerKind)",
                     static_cast<int>(init.kind), static_cast<int>(InitializerKind::identity)));
}

}  // namespace

void check_initializer(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape,
                       const Initializer& initializer) {
  const bool orthogonal = initializer.kind == InitializerKind::orthogonal;
  const bool identity = initializer.kind == InitializerKind::identity;
  if ((orthogonal && shape.size() < 2) || (identity && shape.size() != 2)) {
    throw Error(
        Code::invalid_argument,
        fmt::format("variable \"{}\": found rank {}, expected rank {} for the {} initializer", name,
                    shape.size(), orthogonal ? "2 or more" : "2", orthogonal ? "orthogonal" : "identity"));
  }
  if (orthogonal && !is_floating(dtype)) {
    throw Error(Code::invalid_argument,
                fmt::format("variable \"{}\": found dtype {}, expected a floating-point dtype for the "
                            "orthogonal initializer",
                            name, to_string(dtype)));
  }
  check_numbers(name, dtype, initializer);
}

Initializer seeded(Initializer initializer, std::string_view name) {
  if (initializer.seed == kSeedFromName) initializer.seed = static_cast<std::uint64_t>(hash_key(name));
  return initializer;
}

namespace {

/// ", schedule=cosine_decay, decay_steps=1000, ..."; empty for a constant rate.
std::string describe(const Schedule& s) {
  const auto steps = [&] {
    return fmt::format(", schedule={}, decay_steps={}", to_string(s.kind), s.decay_steps);
  };
  switch (s.kind) {
    case ScheduleKind::constant:
      return {};
    case ScheduleKind::exponential_decay:
    case ScheduleKind::inverse_time_decay:
      return steps() + fmt::format(", decay_rate={}, staircase={}", s.decay_rate, s.staircase);
    case ScheduleKind::polynomial_decay:
      return steps() + fmt::format(", end_learning_rate={}, power={}, cycle={}", s.end, s.power, s.cycle);
    case ScheduleKind::cosine_decay:
      if (!s.warmup_target) return steps() + fmt::format(", alpha={}", s.end);
      return steps() + fmt::format(", alpha={}, warmup_target={}, warmup_steps={}", s.end, *s.warmup_target,
                                   s.warmup_steps);
    case ScheduleKind::piecewise_constant_decay:
      // Separated by semicolons, because commas separate parameters.
      return fmt::format(", schedule={}, boundaries={}, values={}", to_string(s.kind),
                         fmt::join(s.boundaries, ";"), fmt::join(s.values, ";"));
  }
  return ", schedule=unknown";
}

}  // namespace

std::string describe(const Optimizer& o) {
  const std::string rate = fmt::format("learning_rate={}{}", o.learning_rate, describe(o.schedule));
  switch (o.kind) {
    case OptimizerKind::sgd:
      return fmt::format("sgd({})", rate);
    case OptimizerKind::adagrad:
      return fmt::format("adagrad({}, initial_accumulator={}, epsilon={})", rate, o.initial_accumulator,
                         o.epsilon);
    case OptimizerKind::adam:
      return fmt::format("adam({}, beta1={}, beta2={}, epsilon={})", rate, o.beta1, o.beta2, o.epsilon);
    case OptimizerKind::momentum:
      return fmt::format("momentum({}, momentum={}, nesterov={})", rate, o.momentum, o.nesterov);
    case OptimizerKind::rmsprop:
      return fmt::format("rmsprop({}, rho={}, epsilon={})", rate, o.rho, o.epsilon);
    case OptimizerKind::adamw:
      return fmt::format("adamw({}, weight_decay={}, beta1={}, beta2={}, epsilon={})", rate, o.weight_decay,
                         o.beta1, o.beta2, o.epsilon);
    case OptimizerKind::ftrl:
      return fmt::format(
          "ftrl({}, learning_rate_power={}, initial_accumulator={}, l1={}, l2={}, l2_shrinkage={}, beta={})",
          rate, o.learning_rate_power, o.initial_accumulator, o.l1, o.l2, o.l2_shrinkage, o.beta);
  }
  return "unknown optimizer";
}

std::vector<std::string> slots_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd:
      return {};
    case OptimizerKind::adagrad:
      return {"accumulator"};
    case OptimizerKind::adam:
    case OptimizerKind::adamw:
      return {"m", "v"};
    case OptimizerKind::momentum:
      return {"velocity"};
    case OptimizerKind::rmsprop:
      return {"mean_square"};
    case OptimizerKind::ftrl:
      return {"accumulator", "linear"};
  }
  return {};
}

double initial_slot_value(const Optimizer& o, std::size_t slot) {
  const bool accumulates = o.kind == OptimizerKind::adagrad || o.kind == OptimizerKind::ftrl;
  return accumulates && slot == 0 ? o.initial_accumulator : 0;
}

}  // namespace protocol
}  // namespace capstan
