// update_parts.hpp -- divides an update of a shard among threads.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "protocol/push_format.hpp"
#include "ps/durability/journal.hpp"
#include "ps/update/apply_threads.hpp"
#include "ps/update/kernels.hpp"

namespace capstan::ps {

static_assert(ApplyThreads::kMost <= Journal::kLists);

/// Divides updates so that each row, or each range of a long row, belongs to one part. Equal rows therefore
/// change in their order, and the result does not depend on the number of threads. One thread at a time may
/// use it.
class UpdateParts {
 public:
  /// Smaller updates are not divided: to await other threads takes about a microsecond, even if they poll.
  static constexpr std::uint64_t kLeastBytes = 32768;

  explicit UpdateParts(int threads) : threads_(threads), parts_(static_cast<std::size_t>(threads)) {}

  /// Calls apply(part, number) for parts of the update, whose numbers are less than Journal::kLists, on
  /// several threads. Throws what `apply` throws.
  template <class T, class Apply>
  void apply(const Update<T>& update, const Apply& apply) {
    if (threads_.count() == 1 || update.count * update.width * sizeof(T) < kLeastBytes) {
      return apply(update, 0);
    }
    threads_.run([&](int number) {
      const auto part = static_cast<std::size_t>(number);
      if (update.rows != nullptr) {
        apply(rows_of(part, update), part);
      } else {
        apply_range(part, update, apply);
      }
    });
  }

 private:
  /// A part of an update of scattered rows. In a cache line of its own.
  struct alignas(protocol::kCacheLine) Rows {
    std::vector<std::uint32_t> rows;
    std::vector<std::uint32_t> positions;
  };

  /// Selects the rows of a part by a hash, since the rows of an update may have any pattern. As many rows of
  /// a power of two as a cache line holds belong to one part, so that threads rarely share a line.
  /// Multiplicative hashing: Knuth, The Art of Computer Programming 3, 6.4.
  template <class T>
  Update<T> rows_of(std::size_t part, const Update<T>& update) {
    const std::uint64_t row_bytes = update.width * sizeof(T);
    const int shift = std::bit_width(protocol::kCacheLine / row_bytes | 1) - 1;
    const auto count = static_cast<std::uint64_t>(threads_.count());
    Rows& selected = parts_[part];
    selected.rows.clear();
    selected.positions.clear();
    for (std::uint64_t i = 0; i < update.count; ++i) {
      const std::uint32_t hash = (update.rows[i] >> shift) * 2654435769U;
      if ((hash * count) >> 32 != part) continue;
      selected.rows.push_back(update.rows[i]);
      selected.positions.push_back(static_cast<std::uint32_t>(i));
    }
    Update<T> out = update;
    out.rows = selected.rows.data();
    out.positions = selected.positions.data();
    out.count = selected.rows.size();
    return out;
  }

  /// Applies a range of the elements of consecutive rows, which begins at a cache line of the gradient.
  template <class T, class Apply>
  void apply_range(std::size_t part, const Update<T>& update, const Apply& apply) {
    const std::uint64_t elements = update.count * update.width;
    const auto count = static_cast<std::uint64_t>(threads_.count());
    const std::uint64_t size = protocol::round_up((elements + count - 1) / count * sizeof(T)) / sizeof(T);
    const std::uint64_t begin = std::min(part * size, elements);
    Update<T> range = update;
    range.width = std::min(size, elements - begin);
    if (range.width == 0) return;
    const std::uint64_t first = update.first_row * update.width + begin;
    range.first_row = 0;
    range.count = 1;
    range.values += first;
    if (range.slot0 != nullptr) range.slot0 += first;
    if (range.slot1 != nullptr) range.slot1 += first;
    range.gradient += begin;
    apply(range, part);
  }

  ApplyThreads threads_;
  std::vector<Rows> parts_;
};

}  // namespace capstan::ps
