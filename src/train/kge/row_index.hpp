// row_index.hpp -- the sorted unique ids of a batch, and the position of each use among them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace capstan::kge {

/// Keeps its buffers between batches. Used by one thread at a time.
class RowIndex {
 public:
  /// `uses` are the ids of the batch, with repetitions. REQUIRES: at most 2^31 of them, each at least 0 and
  /// less than 2^32.
  void build(std::span<const std::int64_t> uses);

  /// Sorted and unique.
  std::span<const std::int64_t> ids() const noexcept { return ids_; }

  /// Returns, for each element of `uses`, the position of its id in ids().
  std::span<const std::int32_t> positions() const noexcept { return positions_; }

 private:
  std::vector<std::uint64_t> order_;  // id in the upper half, index of the use in the lower
  std::vector<std::uint64_t> scratch_;
  std::vector<std::int64_t> ids_;
  std::vector<std::int32_t> positions_;
};

}  // namespace capstan::kge
