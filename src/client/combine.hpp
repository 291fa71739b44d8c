// combine.hpp -- one row for each id: gradients of ids that are named twice are summed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "capstan/dtype.hpp"

namespace capstan::client {

inline bool strictly_increasing(std::span<const std::int64_t> ids) noexcept {
  for (std::size_t i = 1; i < ids.size(); ++i) {
    if (ids[i] <= ids[i - 1]) return false;
  }
  return true;
}

/// Finds ids that are named twice, and sums their rows. Keeps its memory from call to call. One thread.
class Combiner {
 public:
  struct Rows {
    std::span<const std::int64_t> ids;  // in the order of their first appearance
    const std::byte* values = nullptr;
  };

  /// `values` has one row of `width` elements for each id, ids are in [0, rows). Returns the arguments
  /// themselves when no id is named twice, which costs a nanosecond or two an id; else what lives until the
  /// next call. Sums are formed in the order of the call, so the result does not depend on anything else.
  Rows combine(DType dtype, std::uint64_t width, std::uint64_t rows, std::span<const std::int64_t> ids,
               const void* values);
  /// No id is named twice, of a variable with so many rows.
  bool all_different(std::uint64_t rows, std::span<const std::int64_t> ids);

 private:
  /// The place of an id among the different ones.
  struct Slot {
    std::int64_t id;
    std::uint32_t call;  // slots of earlier calls are free
    std::uint32_t place;
  };

  /// For each id its place; fills ids_.
  void find_places(std::span<const std::int64_t> ids);

  std::vector<std::uint64_t> seen_;  // a bit a row, all zero between calls
  std::vector<Slot> slots_;          // open addressing, a power of two
  std::uint32_t call_ = 0;
  std::vector<std::uint32_t> places_;
  std::vector<std::int64_t> ids_;
  std::vector<std::byte> values_;
};

}  // namespace capstan::client
