// combine.hpp -- sums the gradient rows of duplicate ids.
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

/// Finds duplicate ids and sums their rows. Reuses its memory. Used by one thread at a time.
class Combiner {
 public:
  struct Rows {
    std::span<const std::int64_t> ids;  // in the order of their first appearance
    const std::byte* values = nullptr;
  };

  /// `values` has one row of `width` elements for each id; ids are in [0, rows). Without duplicates it
  /// returns the arguments, at a cost of one or two nanoseconds per id; otherwise memory that is valid
  /// until the next call. Rows are summed in the order of the call, so the result is deterministic.
  Rows combine(DType dtype, std::uint64_t width, std::uint64_t rows, std::span<const std::int64_t> ids,
               const void* values);
  /// Returns true if there are no duplicates; ids are in [0, rows).
  bool all_different(std::uint64_t rows, std::span<const std::int64_t> ids);

 private:
  /// Index of an id among the distinct ids.
  struct Slot {
    std::int64_t id;
    std::uint32_t call;  // a slot of an earlier call is free
    std::uint32_t index;
  };

  /// Finds the index of each id; fills ids_.
  void find_indices(std::span<const std::int64_t> ids);

  std::vector<std::uint64_t> seen_;  // bitmap of rows, all zero between calls
  std::vector<Slot> slots_;          // open addressing; the size is a power of two
  std::uint32_t call_ = 0;
  std::vector<std::uint32_t> indices_;
  std::vector<std::int64_t> ids_;
  std::vector<std::byte> values_;
};

}  // namespace capstan::client
