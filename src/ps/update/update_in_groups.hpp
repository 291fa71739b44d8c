// update_in_groups.hpp -- applies an update in groups of rows, each logged to the journal first.
#pragma once

#include <algorithm>
#include <vector>

#include "ps/durability/journal.hpp"
#include "ps/update/kernels.hpp"

namespace capstan::ps {

/// Calls `apply` with parts of `whole`, in order. `values` and `slots` are the beginnings of the shard's
/// arrays; without slots, these do not change. Updates work element by element, so a long row is divided,
/// too.
template <class T, class Apply>
void apply_in_groups(const Update<T>& whole, T* values, const std::vector<std::byte*>& slots,
                     Journal& journal, const Apply& apply) {
  using Slot = Arithmetic<T>;
  Journal::Group group;
  group.bases[0] = reinterpret_cast<std::byte*>(values);
  for (std::size_t slot = 0; slot < slots.size(); ++slot) group.bases[slot + 1] = slots[slot];
  const auto measure = [&](std::uint64_t elements) {
    for (std::size_t a = 0; a < Journal::kArrays; ++a)
      group.bytes[a] = elements * (a == 0 ? sizeof(T) : sizeof(Slot));
  };
  const auto lie_at = [&](std::uint64_t element) {
    for (std::size_t a = 0; a < Journal::kArrays; ++a)
      group.offsets[a] = element * (a == 0 ? sizeof(T) : sizeof(Slot));
  };
  constexpr std::uint64_t kMostElements = Journal::kGroupBytes / std::max(sizeof(T), sizeof(Slot));

  if (whole.rows != nullptr && whole.width <= kMostElements) {
    const std::uint64_t most = std::clamp<std::uint64_t>(
        kMostElements / std::max<std::uint64_t>(whole.width, 1), 1, Journal::kGroupRows);
    measure(whole.width);
    for (std::uint64_t first = 0; first < whole.count; first += most) {
      Update<T> part = whole;
      part.rows = group.rows = whole.rows + first;
      part.count = group.count = std::min(most, whole.count - first);
      part.gradient += first * whole.width;
      journal.log(group);
      apply(part);
    }
    return;
  }
  for (std::uint64_t i = 0; i < whole.count; ++i) {
    const std::uint64_t row = whole.rows != nullptr ? whole.rows[i] : whole.first_row + i;
    for (std::uint64_t begin = 0; begin < whole.width; begin += kMostElements) {
      Update<T> part = whole;
      part.rows = nullptr;
      part.first_row = 0;
      part.count = 1;
      part.width = std::min(kMostElements, whole.width - begin);
      part.values += row * whole.width + begin;
      if (part.slot0 != nullptr) part.slot0 += row * whole.width + begin;
      if (part.slot1 != nullptr) part.slot1 += row * whole.width + begin;
      part.gradient += i * whole.width + begin;
      measure(part.width);
      lie_at(static_cast<std::uint64_t>(part.values - values));
      journal.log(group);
      apply(part);
    }
  }
}

}  // namespace capstan::ps
