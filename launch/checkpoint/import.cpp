// import.cpp -- `capstan checkpoint import`: makes a checkpoint of one NumPy or HDF5 array.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <type_traits>

#include "base/name.hpp"
#include "base/with_type.hpp"
#include "capstan/error.hpp"
#include "capstan/optimizers.hpp"
#include "io/hdf5/checkpoint_types.hpp"
#include "io/hdf5/layout.hpp"
#include "launch/checkpoint/byte_progress.hpp"
#include "launch/checkpoint/commands.hpp"
#include "launch/checkpoint/find.hpp"
#include "launch/checkpoint/import_source.hpp"
#include "launch/checkpoint/new_checkpoint.hpp"
#include "launch/checkpoint/output.hpp"
#include "protocol/descriptor.hpp"

namespace capstan::launch::checkpoint {
namespace {

constexpr std::array<OptimizerKind, 7> kKinds{
    OptimizerKind::sgd,  OptimizerKind::momentum, OptimizerKind::adagrad, OptimizerKind::rmsprop,
    OptimizerKind::adam, OptimizerKind::adamw,    OptimizerKind::ftrl};

Optimizer optimizer_of(const Request& request, DType dtype) {
  std::vector<std::string_view> names;
  for (const OptimizerKind kind : kKinds) {
    names.push_back(to_string(kind));
    if (names.back() != request.optimizer) continue;
    if (kind != OptimizerKind::sgd && !is_floating(dtype)) {
      throw Error(Code::invalid_argument,
                  fmt::format("--optimizer {}: the array is {}, expected a floating-point dtype; use sgd",
                              request.optimizer, to_string(dtype)));
    }
    return {.kind = kind, .initial_accumulator = request.initial_accumulator};
  }
  throw Error(Code::invalid_argument,
              fmt::format("--optimizer {}: expected {}", request.optimizer, fmt::join(names, ", ")));
}

template <class T>
void fill(std::byte* out, std::uint64_t elements, double value) {
  const auto element = static_cast<T>(static_cast<Arithmetic<T>>(value));
  auto* const to = reinterpret_cast<T*>(out);
  std::fill(to, to + elements, element);
}

/// An optimizer slot with the values that it has before the first step.
io::PartArray new_slot(const io::PartArray& value, const Optimizer& optimizer, std::size_t slot) {
  io::PartArray array{.variable = value.variable,
                      .component = protocol::slots_of(optimizer.kind).at(slot),
                      .dtype = protocol::slot_dtype(value.dtype),
                      .shape = value.shape};
  const std::uint64_t width = io::row_bytes(array.shape, array.dtype) / size_of(array.dtype);
  array.read = [dtype = array.dtype, width, first = protocol::initial_slot_value(optimizer, slot)](
                   std::uint64_t, std::uint64_t rows, std::byte* out) {
    with_type(dtype, [&]<class T>(std::type_identity<T>) { fill<T>(out, rows * width, first); });
  };
  return array;
}

void write(const Request& request, const ImportSource& source, const Optimizer& optimizer,
           NewCheckpoint& to) {
  const std::uint64_t row = io::row_bytes(source.shape, source.dtype);
  ByteProgress progress("import", source.shape[0] * row);
  std::vector<io::PartArray> arrays{
      {.variable = request.variables.back(), .dtype = source.dtype, .shape = source.shape}};
  arrays[0].optimizer = fmt::format("{}(imported)", to_string(optimizer.kind));
  arrays[0].read = [&, row](std::uint64_t first, std::uint64_t rows, std::byte* out) {
    source.read(first, rows, out);
    progress.callback()(rows * row);
  };
  for (std::size_t slot = 0; slot < protocol::slots_of(optimizer.kind).size(); ++slot) {
    arrays.push_back(new_slot(arrays[0], optimizer, slot));
  }
  to.write(arrays, 1, [](io::PartArray&) {});
}

}  // namespace

int import_from(const Request& request) {
  const std::string& name = request.variables.back();
  check_name("variable", name);
  const ImportSource source = open_import_source(request.from, request.dataset);
  const Optimizer optimizer = optimizer_of(request, source.dtype);
  NewCheckpoint to(without_trailing_slash(request.to), request.step, request.force);
  write(request, source, optimizer, to);
  const std::filesystem::path directory = to.publish({});
  if (request.json) {
    print_json(nlohmann::json{{"from", request.from},
                              {"path", directory.string()},
                              {"step", request.step},
                              {"variable", name},
                              {"dtype", to_string(source.dtype)},
                              {"shape", source.shape},
                              {"slots", protocol::slots_of(optimizer.kind)}});
  } else {
    print(fmt::format("{}: {} {} {}\n", directory.string(), name, to_string(source.dtype),
                      shape_text(source.shape)));
  }
  return 0;
}

}  // namespace capstan::launch::checkpoint
