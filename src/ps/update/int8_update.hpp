// int8_update.hpp -- applies an update to rows that are stored as 8-bit integers.
#pragma once

#include <algorithm>
#include <vector>

#include "protocol/int8_rows.hpp"
#include "ps/durability/journal.hpp"
#include "ps/update/kernels.hpp"

namespace capstan::ps {

/// Arrays of a shard with int8 rows, and where their old contents are logged.
struct Int8Arrays {
  std::byte* values = nullptr;
  std::vector<std::byte*> changed_slots = {};  // float32; empty if the update does not change them
  Journal* journal = nullptr;                  // null: no log
  std::size_t list = 0;                        // see Journal::log
};

/// Logs rows before they change: up to Journal::kGroupRows rows, or one row of any length.
inline void log_int8_rows(const Int8Arrays& arrays, std::uint64_t width, const std::uint32_t* rows,
                          std::uint64_t count) {
  constexpr std::uint64_t kMaxElements = Journal::kGroupBytes / sizeof(float);
  constexpr std::uint64_t kScaleBytes = protocol::int8_row_bytes(0);
  const std::uint64_t row_bytes = protocol::int8_row_bytes(width);
  Journal::Group group;
  group.bases[0] = arrays.values;
  std::copy(arrays.changed_slots.begin(), arrays.changed_slots.end(), group.bases + 1);
  if (width <= kMaxElements) {
    std::fill(std::begin(group.bytes), std::end(group.bytes), width * sizeof(float));
    group.bytes[0] = row_bytes;
    group.rows = rows;
    group.count = count;
    return arrays.journal->log(group, arrays.list);
  }
  for (std::uint64_t begin = 0; begin < width; begin += kMaxElements) {
    const std::uint64_t end = std::min(begin + kMaxElements, width);
    std::fill(std::begin(group.offsets), std::end(group.offsets), (*rows * width + begin) * sizeof(float));
    std::fill(std::begin(group.bytes), std::end(group.bytes), (end - begin) * sizeof(float));
    const std::uint64_t first_byte = begin == 0 ? 0 : kScaleBytes + begin;
    group.offsets[0] = *rows * row_bytes + first_byte;
    group.bytes[0] = kScaleBytes + end - first_byte;
    arrays.journal->log(group, arrays.list);
  }
}

/// Calls `apply` with each row as floats and its gradient, then stores the row, rounded as
/// `update.rounding` says. `update.values` is not used; its slots are those of the shard. REQUIRES:
/// update.rows is set, and update.first_gradient for stochastic rounding.
template <class Apply>
void update_int8_rows(const Update<float>& update, const Int8Arrays& arrays, const Apply& apply) {
  constexpr std::uint64_t kAhead = 8;  // prefetch distance in rows
  const std::uint64_t width = update.width;
  const std::uint64_t row_bytes = protocol::int8_row_bytes(width);
  const std::uint64_t rows_per_group =
      std::clamp<std::uint64_t>(Journal::kGroupBytes / sizeof(float) / width, 1, Journal::kGroupRows);
  std::vector<float> row(width);
  for (std::uint64_t i = 0; i < update.count; ++i) {
    if (arrays.journal != nullptr && i % rows_per_group == 0)
      log_int8_rows(arrays, width, update.rows + i, std::min(rows_per_group, update.count - i));
    const std::uint64_t ahead = update.rows[std::min(i + kAhead, update.count - 1)];
    __builtin_prefetch(arrays.values + ahead * row_bytes, 1);
    if (update.slot0 != nullptr) __builtin_prefetch(update.slot0 + ahead * width, 1);
    if (update.slot1 != nullptr) __builtin_prefetch(update.slot1 + ahead * width, 1);

    const std::uint64_t first_element = update.rows[i] * width;
    std::byte* const stored = arrays.values + update.rows[i] * row_bytes;
    protocol::from_int8_rows({stored, row_bytes}, width, row.data());
    Update<float> one = update;
    one.values = row.data();
    if (one.slot0 != nullptr) one.slot0 += first_element;
    if (one.slot1 != nullptr) one.slot1 += first_element;
    one.rows = nullptr;
    one.first_row = 0;
    one.count = 1;
    one.gradient = update.gradient_of(i);
    one.positions = nullptr;
    apply(one);
    // As for 16-bit rows, the bits differ if a row occurs twice.
    const auto of_gradient = static_cast<std::uint64_t>(one.gradient - update.first_gradient);
    protocol::to_int8_row(row, update.rounding, first_element + (of_gradient << 32), stored);
  }
}

}  // namespace capstan::ps
