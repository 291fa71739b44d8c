// update_in_groups.hpp -- applies an update in groups of rows, each logged to the journal first.
#pragma once

#include <algorithm>
#include <vector>

#include "ps/durability/journal.hpp"
#include "ps/update/kernels.hpp"

namespace capstan::ps {

/// For each part of `update`, logs the old contents of its rows, then calls `apply` with the part. `values`
/// and `slots` are the beginnings of the shard's arrays; `slots` is empty if the update does not change them.
/// Updates are elementwise, so long rows are divided as well. `list` is that of Journal::log. Throws
/// Error(internal) if the update exceeds the journal.
template <class T, class Apply>
void apply_in_groups(const Update<T>& update, T* values, const std::vector<std::byte*>& slots,
                     Journal& journal, const Apply& apply, std::size_t list = 0) {
  using Slot = Arithmetic<T>;
  Journal::Group group;
  group.bases[0] = reinterpret_cast<std::byte*>(values);
  for (std::size_t slot = 0; slot < slots.size(); ++slot) group.bases[slot + 1] = slots[slot];
  const auto set_row_bytes = [&](std::uint64_t elements) {
    for (std::size_t a = 0; a < Journal::kArrays; ++a)
      group.bytes[a] = elements * (a == 0 ? sizeof(T) : sizeof(Slot));
  };
  const auto set_offsets = [&](std::uint64_t element) {
    for (std::size_t a = 0; a < Journal::kArrays; ++a)
      group.offsets[a] = element * (a == 0 ? sizeof(T) : sizeof(Slot));
  };
  constexpr std::uint64_t kMaxElements = Journal::kGroupBytes / std::max(sizeof(T), sizeof(Slot));

  if (update.rows != nullptr && update.width <= kMaxElements) {
    const std::uint64_t max_rows = std::clamp<std::uint64_t>(
        kMaxElements / std::max<std::uint64_t>(update.width, 1), 1, Journal::kGroupRows);
    set_row_bytes(update.width);
    for (std::uint64_t first = 0; first < update.count; first += max_rows) {
      Update<T> part = update;
      part.rows = group.rows = update.rows + first;
      part.count = group.count = std::min(max_rows, update.count - first);
      if (part.positions != nullptr) {
        part.positions += first;
      } else {
        part.gradient += first * update.width;
      }
      journal.log(group, list);
      apply(part);
    }
    return;
  }
  for (std::uint64_t i = 0; i < update.count; ++i) {
    const std::uint64_t row = update.rows != nullptr ? update.rows[i] : update.first_row + i;
    for (std::uint64_t begin = 0; begin < update.width; begin += kMaxElements) {
      Update<T> part = update;
      part.rows = nullptr;
      part.first_row = 0;
      part.count = 1;
      part.width = std::min(kMaxElements, update.width - begin);
      part.values += row * update.width + begin;
      if (part.slot0 != nullptr) part.slot0 += row * update.width + begin;
      if (part.slot1 != nullptr) part.slot1 += row * update.width + begin;
      part.gradient = update.gradient_of(i) + begin;
      part.positions = nullptr;
      set_row_bytes(part.width);
      set_offsets(static_cast<std::uint64_t>(part.values - values));
      journal.log(group, list);
      apply(part);
    }
  }
}

}  // namespace capstan::ps
