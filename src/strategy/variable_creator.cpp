// variable_creator.cpp -- all checks precede the first request to a ps.
#include "strategy/variable_creator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/name.hpp"
#include "capstan/error.hpp"
#include "protocol/table_layout.hpp"

namespace capstan::strategy {
namespace {

/// Rejects values that are not enumerators, such as integers that were cast to the enumeration.
void check_options(const std::string& name, const VariableOptions& options) {
  const auto check = [&](const char* option, auto given, auto last, const char* allowed) {
    if (given <= last) return;
    throw Error(Code::invalid_argument, fmt::format("variable \"{}\" has {} {}; expected {}", name, option,
                                                    static_cast<int>(given), allowed));
  };
  check("aggregation", options.aggregation, VariableAggregation::only_first_replica,
        "none, sum, mean or only_first_replica");
  check("synchronization", options.synchronization, VariableSynchronization::on_read,
        "automatic, none, on_write or on_read");
  check("memory", options.memory.value_or(ShardMemory::host), ShardMemory::device, "host or device");
}

void check_combining(const protocol::VariableDescriptor& variable) {
  constexpr std::uint32_t kMaxRows = 1 << 24;
  const auto& combine = variable.communication.combine_pushes;
  if (!combine) return;
  if (combine->rows == 0 || combine->rows > kMaxRows || combine->pushes == 0) {
    throw Error(Code::invalid_argument,
                fmt::format("variable \"{}\" combines the pushes of {} rows over {} pushes; expected 1 to {} "
                            "rows, and at least 1 push",
                            variable.name, combine->rows, combine->pushes, kMaxRows));
  }
  // Sums of 16-bit numbers would be rounded, and may overflow.
  if (size_of(variable.dtype) < sizeof(float)) {
    throw Error(Code::invalid_argument,
                fmt::format("variable \"{}\" has dtype {} and combines pushes; expected float32, float64, "
                            "int32 or int64",
                            variable.name, to_string(variable.dtype)));
  }
}

void check_communication(const std::string& name, DType dtype, std::optional<DType> communication) {
  const bool narrows = dtype == DType::float32 && communication == DType::bfloat16;
  if (!communication || communication == dtype || narrows) return;
  throw Error(Code::invalid_argument,
              fmt::format("variable or table \"{}\" has dtype {} and communication_dtype {}; expected {}",
                          name, to_string(dtype), to_string(*communication),
                          dtype == DType::float32 ? "float32 or bfloat16" : to_string(dtype)));
}

void check_int8_lookups(const std::string& name, DType dtype, const VariableOptions& options) {
  if (dtype == DType::float32 || !options.int8_lookups.value_or(false)) return;
  throw Error(Code::invalid_argument,
              fmt::format("variable or table \"{}\" has dtype {} and int8_lookups; expected float32", name,
                          to_string(dtype)));
}

void check_rounding(const protocol::VariableDescriptor& variable, bool stochastic_rounding) {
  const bool rounds = variable.storage.stochastic_rounding || variable.communication.stochastic_rounding;
  if (!stochastic_rounding || rounds) return;
  throw Error(
      Code::invalid_argument,
      fmt::format("{} \"{}\" has dtype {} and stochastic rounding; expected float16 or bfloat16, or "
                  "float32 with int8_rows or communication_dtype bfloat16",
                  variable.table ? "dynamic table" : "variable", variable.name, to_string(variable.dtype)));
}

}  // namespace

VariableCreator::VariableCreator(const Services& services, const StrategyOptions& options,
                                 bool on_coordinator)
    : services_(services),
      default_memory_(options.memory),
      default_communication_(options.communication_dtype),
      default_int8_lookups_(options.int8_lookups),
      on_coordinator_(on_coordinator),
      placement_(services.runtime.count(Role::ps), options.variable_partitioner, options.placement),
      shards_(services.context, services.recovery, placement_) {
  const auto& dtype = options.communication_dtype;
  if (!dtype || *dtype == DType::float32 || *dtype == DType::bfloat16) return;
  throw Error(Code::invalid_argument,
              fmt::format("the strategy has communication_dtype {}; expected float32 or bfloat16",
                          to_string(*dtype)));
}

std::shared_ptr<const BoundVariable> VariableCreator::create(const std::string& name, DType dtype,
                                                             const Shape* shape,
                                                             const detail::AnyInitialValue& initial,
                                                             const VariableOptions& options) {
  check_name("variable", name);
  detail::WholeValue value;
  if (shape != nullptr) check_new(name, *shape);
  if (initial.whole) value = initial.whole();
  if (shape == nullptr && !initial.whole) {
    throw Error(Code::invalid_argument, "variable \"" + name + "\" needs a shape: its initializer has none");
  }
  if (shape != nullptr && initial.whole && !value.fits(*shape)) {
    throw Error(Code::invalid_argument,
                fmt::format("variable \"{}\" has shape {} and an initial value of shape {}", name,
                            to_string(*shape), to_string(value.shape)));
  }
  const Shape& sizes = shape != nullptr ? *shape : value.shape;
  if (shape == nullptr) check_new(name, sizes);
  protocol::check_initializer(name, dtype, sizes, initial.initializer);
  check_options(name, options);
  protocol::VariableDescriptor descriptor = describe(name, dtype, sizes, options);
  protocol::check_optimizer(name, dtype, descriptor.optimizer);
  check_combining(descriptor);
  check_rounding(descriptor, options.stochastic_rounding);
  protocol::check_bytes(name, dtype, descriptor.shape, descriptor.optimizer.kind);
  services_.restore_point.require_fit(descriptor);

  ShardCreator::Created created = shards_.create(descriptor, initial);
  fill(descriptor, created, initial, value);
  return add(std::move(descriptor), std::move(created));
}

std::shared_ptr<const BoundVariable> VariableCreator::add(protocol::VariableDescriptor descriptor,
                                                          ShardCreator::Created created) {
  for (auto& [ps, request] : created.requests) services_.contents.add(ps, std::move(request));
  services_.restore_point.note_created(descriptor.id);
  auto bound = services_.context.add(std::move(descriptor), on_coordinator_);
  services_.variables.add(bound);
  return bound;
}

std::shared_ptr<const BoundVariable> VariableCreator::create_table(const std::string& name, DType dtype,
                                                                   std::int64_t dim,
                                                                   const Initializer& initial,
                                                                   const TableOptions& options) {
  check_name("table", name);
  if (dim < 1 || options.max_keys < 1) {
    throw Error(
        Code::invalid_argument,
        fmt::format("dynamic table \"{}\" has rows of {} elements and max_keys {}; expected at least 1", name,
                    dim, options.max_keys));
  }
  if (options.missing > MissingKeys::error) {
    throw Error(
        Code::invalid_argument,
        fmt::format("dynamic table \"{}\" has missing {}; expected zeros, default_row, initial or error",
                    name, static_cast<int>(options.missing)));
  }
  if (options.when_full > WhenFull::evict_least_frequent) {
    throw Error(Code::invalid_argument,
                fmt::format("dynamic table \"{}\" has when_full {}; expected refuse, evict_least_recent or "
                            "evict_least_frequent",
                            name, static_cast<int>(options.when_full)));
  }
  if (options.admit_after < 1 || options.admit_after > protocol::kMaxAdmitAfter) {
    throw Error(Code::invalid_argument,
                fmt::format("dynamic table \"{}\" has admit_after {}; expected 1 to {}", name,
                            options.admit_after, protocol::kMaxAdmitAfter));
  }
  if (!(options.admit_probability > 0 && options.admit_probability <= 1)) {
    throw Error(Code::invalid_argument,
                fmt::format("dynamic table \"{}\" has admit_probability {}; expected more than 0, at most 1",
                            name, options.admit_probability));
  }
  if (options.admit_after > 1 && options.admit_probability < 1) {
    throw Error(
        Code::invalid_argument,
        fmt::format("dynamic table \"{}\" has admit_after {} and admit_probability {}; expected one of "
                    "the two",
                    name, options.admit_after, options.admit_probability));
  }
  const auto ps = static_cast<std::uint64_t>(services_.runtime.count(Role::ps));
  const std::uint64_t rows = protocol::rows_of_table_shard(options.max_keys, ps) +
                             (options.when_full == WhenFull::refuse ? 0 : protocol::kSpareRows);
  if (rows > protocol::TableLayout::kMaxRows) {
    throw Error(
        Code::invalid_argument,
        fmt::format("dynamic table \"{}\": found max_keys {}, which is {} rows on each ps; expected at "
                    "most {}; use more ps",
                    name, options.max_keys, rows, protocol::TableLayout::kMaxRows));
  }
  const Shape shape{static_cast<std::int64_t>(ps * rows), dim};
  check_new(name, shape);
  for (std::uint64_t s = 0; s < ps; ++s) services_.variables.require_new(io::table_part(name, s));
  protocol::check_initializer(name, dtype, shape, initial);
  protocol::VariableDescriptor descriptor = describe(name, dtype, shape,
                                                     {.optimizer = options.optimizer,
                                                      .trainable = options.trainable,
                                                      .group = options.group,
                                                      .memory = ShardMemory::host,
                                                      .stochastic_rounding = options.stochastic_rounding,
                                                      .int8_rows = options.int8_rows,
                                                      .communication_dtype = options.communication_dtype,
                                                      .int8_lookups = options.int8_lookups});
  descriptor.table = true;
  descriptor.policy = {options.missing, options.when_full, options.admit_after, options.evict_after,
                       options.admit_probability};
  protocol::check_optimizer(name, dtype, descriptor.optimizer);
  check_rounding(descriptor, options.stochastic_rounding);
  protocol::check_bytes(name, dtype, descriptor.shape, descriptor.optimizer.kind);
  services_.restore_point.require_fit(descriptor);
  ShardCreator::Created created = shards_.create(descriptor, {initial, 0, {}});
  fill(descriptor, created, {}, {});
  return add(std::move(descriptor), std::move(created));
}

protocol::VariableDescriptor VariableCreator::describe(const std::string& name, DType dtype,
                                                       const Shape& shape,
                                                       const VariableOptions& options) const {
  protocol::VariableDescriptor descriptor;
  descriptor.name = name;
  descriptor.dtype = dtype;
  descriptor.shape.assign(shape.begin(), shape.end());
  descriptor.optimizer = options.optimizer.value_or(is_floating(dtype) || dtype == DType::boolean
                                                        ? Optimizer(optimizers::SGD{})
                                                        : Optimizer(optimizers::SGD{.learning_rate = 1}));
  descriptor.trainable = options.trainable;
  descriptor.aggregation = options.aggregation;
  descriptor.synchronization = options.synchronization;
  descriptor.group = options.group ? options.group->id() : 0;
  descriptor.memory = options.memory.value_or(default_memory_);
  const bool is_half = dtype == DType::float16 || dtype == DType::bfloat16;
  if (options.int8_rows) protocol::check_int8_rows(name, dtype, descriptor.shape, descriptor.memory);
  descriptor.storage = {.int8 = options.int8_rows,
                        .stochastic_rounding = options.stochastic_rounding && (is_half || options.int8_rows)};
  auto communication = options.communication_dtype;
  if (!communication && dtype == DType::float32) communication = default_communication_;
  check_communication(name, dtype, communication);
  check_int8_lookups(name, dtype, options);
  const bool sends_bfloat16 = dtype == DType::float32 && communication == DType::bfloat16;
  descriptor.communication = {
      .combine_pushes = options.combine_pushes,
      .bfloat16 = sends_bfloat16,
      .stochastic_rounding = sends_bfloat16 && options.stochastic_rounding,
      .int8_lookups = dtype == DType::float32 && options.int8_lookups.value_or(default_int8_lookups_)};
  return descriptor;
}

void VariableCreator::check_new(const std::string& name, const Shape& shape) const {
  if (!std::all_of(shape.begin(), shape.end(), [](std::int64_t size) { return size >= 0; })) {
    throw Error(
        Code::invalid_argument,
        fmt::format("variable \"{}\" has shape {}; expected sizes of 0 or more", name, to_string(shape)));
  }
  (void)elements_of(shape);
  services_.variables.require_new(name);
}

void VariableCreator::fill(const protocol::VariableDescriptor& descriptor,
                           const ShardCreator::Created& created, const detail::AnyInitialValue& initial,
                           const detail::WholeValue& value) {
  const bool has_values = created.existed && services_.recovery.complete(descriptor.name);
  const bool needs_value = initial.whole && !has_values;
  bool restored = false;
  try {
    restored = services_.restore_point.fill(descriptor);
  } catch (...) {
    if (!created.existed) shards_.drop(descriptor);
    throw;
  }
  if (!restored && needs_value) {
    services_.context.use_client()->update(descriptor, protocol::RowOp::set, 0, descriptor.rows(),
                                           value.bytes.data());
  }
  if (needs_value && services_.runtime.coordinator_may_return()) {
    services_.runtime.coordinator_memory().change(
        [&](auto& record) { record.variables.push_back(descriptor.name); });
  }
}

}  // namespace capstan::strategy
