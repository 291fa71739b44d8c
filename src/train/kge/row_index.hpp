// row_index.hpp -- the sorted unique ids of a batch, and for each use of an id its place among them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace capstan::kge {

/// Keeps its buffers between batches.
class RowIndex {
 public:
  /// REQUIRES: ids are in 0 .. 2^32 - 1 and fewer than 2^32.
  void build(std::span<const std::int64_t> uses);

  /// Sorted and unique.
  std::span<const std::int64_t> ids() const noexcept { return ids_; }

  /// For the i-th use given to `build`, where its id stands in `ids()`.
  std::span<const std::int32_t> places() const noexcept { return places_; }

 private:
  std::vector<std::uint64_t> order_;  // id in the upper half, use in the lower
  std::vector<std::uint64_t> scratch_;
  std::vector<std::int64_t> ids_;
  std::vector<std::int32_t> places_;
};

}  // namespace capstan::kge
