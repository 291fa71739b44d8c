// store.cpp -- creating, updating and reading shards.
#include "store/store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "store/kernels.hpp"

namespace capstan::store {
namespace {

void fill(DType dtype, double value, std::uint64_t elements, void* out) {
  initialize({InitializerKind::constant, value, 0, 0}, dtype, 0, elements, out);
}

void check_optimizer(const shard::CreateShard& request) {
  if (request.dtype != DType::int64) return;
  const Optimizer& o = request.optimizer;
  if (o.kind != OptimizerKind::sgd || o.learning_rate != std::round(o.learning_rate)) {
    throw Error(
        Code::invalid_argument,
        fmt::format(
            "variable \"{}\" is int64 and cannot use {}: integers take SGD with a whole learning rate",
            request.name, shard::describe(o)));
  }
}

}  // namespace

shard::ShardPlace Store::create(const shard::CreateShard& request) {
  const std::lock_guard lock(mutex_);
  const auto key = std::pair(request.variable, request.shard);
  if (shards_.contains(key)) {
    throw Error(Code::already_exists, fmt::format("variable {} (\"{}\") has a shard {} here",
                                                  request.variable, request.name, request.shard));
  }
  check_optimizer(request);
  Shard made;
  made.description = request;
  const std::uint64_t elements = request.rows * made.width();
  const Piece piece = heap_.allocate(elements * size_of(request.dtype));
  made.values = piece.data;
  made.place = {ps_index_, request.first_row, request.rows, piece.region, piece.offset};
  initialize(request.initializer, request.dtype, request.first_row * made.width(), elements, made.values);
  for (std::size_t slot = 0; slot < shard::slots_of(request.optimizer.kind).size(); ++slot) {
    made.slots.push_back(heap_.allocate(elements * size_of(request.dtype)).data);
    const double first = shard::initial_slot_value(request.optimizer, slot);
    if (first != 0) fill(request.dtype, first, elements, made.slots.back());
  }
  const shard::ShardPlace place = made.place;
  shards_.emplace(key, std::move(made));
  return place;
}

Store::Shard& Store::find(std::uint32_t variable, std::uint32_t shard) {
  const auto found = shards_.find({variable, shard});
  if (found == shards_.end()) {
    throw Error(Code::not_found,
                fmt::format("ps {} has no shard {} of variable {}", ps_index_, shard, variable));
  }
  return found->second;
}

template <class T>
void Store::update(Shard& shard, const shard::PushHeader& header, std::span<const std::uint32_t> rows,
                   const std::byte* values) {
  Update<T> u;
  u.values = reinterpret_cast<T*>(shard.values);
  u.slot0 = shard.slots.empty() ? nullptr : reinterpret_cast<T*>(shard.slots[0]);
  u.slot1 = shard.slots.size() < 2 ? nullptr : reinterpret_cast<T*>(shard.slots[1]);
  u.gradient = reinterpret_cast<const T*>(values);
  u.step = shard.steps;
  u.width = shard.width();
  u.count = header.rows;
  if (header.kind == shard::PushKind::sparse) {
    u.rows = rows.data();
  } else {
    // Consecutive rows are one long row: the kernel then runs without a break.
    u.values += header.first_row * u.width;
    if (u.slot0 != nullptr) u.slot0 += header.first_row * u.width;
    if (u.slot1 != nullptr) u.slot1 += header.first_row * u.width;
    u.width *= u.count;
    u.count = 1;
  }
  store::apply(shard.description.optimizer, u);
}

void Store::apply(const shard::PushHeader& header, std::span<const std::uint32_t> rows,
                  const std::byte* values) {
  const std::lock_guard lock(mutex_);
  const auto found = shards_.find({header.variable, header.shard});
  const bool sparse = header.kind == shard::PushKind::sparse;
  const bool fits = found != shards_.end() && [&] {
    if (!sparse && header.kind != shard::PushKind::dense) return false;
    // A client that believes in wider rows, or none at all, has sent another number of bytes.
    if (header.bytes != shard::entry_bytes(header.kind, header.rows, found->second.row_bytes())) return false;
    if (sparse && rows.size() != header.rows) return false;
    const std::uint64_t have = found->second.description.rows;
    if (!sparse) return header.first_row <= have && header.rows <= have - header.first_row;
    return std::all_of(rows.begin(), rows.end(), [have](std::uint32_t row) { return row < have; });
  }();
  if (!fits) {
    log::error("dropped a push to variable {} shard {}: {} rows do not fit what this ps holds",
               header.variable, header.shard, header.rows);
    return;
  }
  Shard& shard = found->second;
  if (header.first_part != 0) {
    ++shard.steps;
    ++statistics_.pushes;
  }
  statistics_.rows_pushed += header.rows;
  switch (shard.description.dtype) {
    case DType::float32:
      return update<float>(shard, header, rows, values);
    case DType::float64:
      return update<double>(shard, header, rows, values);
    case DType::int64:
      return update<std::int64_t>(shard, header, rows, values);
  }
}

std::vector<std::byte> Store::gather(const shard::LookupRows& request) {
  const std::lock_guard lock(mutex_);
  const Shard& shard = find(request.variable, request.shard);
  const std::uint64_t row_bytes = shard.row_bytes();
  std::vector<std::byte> out(request.rows.size() * row_bytes);
  std::byte* to = out.data();
  for (const std::uint32_t row : request.rows) {
    if (row >= shard.description.rows) {
      throw Error(Code::out_of_range,
                  fmt::format("shard {} of variable \"{}\" has {} rows; row {} was asked for", request.shard,
                              shard.description.name, shard.description.rows, row));
    }
    std::memcpy(to, shard.values + row * row_bytes, row_bytes);
    to += row_bytes;
  }
  statistics_.rows_sent += request.rows.size();
  return out;
}

void Store::assign(const shard::AssignRows& request) {
  const std::lock_guard lock(mutex_);
  const Shard& shard = find(request.variable, request.shard);
  const std::uint64_t first = request.first_row * shard.row_bytes();
  const std::uint64_t all = shard.description.rows * shard.row_bytes();
  if (request.first_row > shard.description.rows || request.values.size() > all - first) {
    throw Error(Code::out_of_range,
                fmt::format("{} bytes from row {} on do not fit shard {} of variable \"{}\"",
                            request.values.size(), request.first_row, request.shard, shard.description.name));
  }
  std::memcpy(shard.values + first, request.values.data(), request.values.size());
}

shard::PsStatistics Store::statistics() {
  const std::lock_guard lock(mutex_);
  statistics_.heap_bytes = heap_.bytes();
  return statistics_;
}

}  // namespace capstan::store
