// partition.hpp -- which shard holds a row: the "div" rule of TensorFlow.
#pragma once

#include <algorithm>
#include <cstdint>

namespace capstan::shard {

/// `rows` rows cut into `shards` contiguous pieces along axis 0; the first rows % shards of them have one
/// more. 10 rows in 4 shards: 3, 3, 2, 2.
class DivPartition {
 public:
  /// REQUIRES: 1 <= shards <= rows.
  DivPartition(std::uint64_t rows, std::uint64_t shards) : base_(rows / shards), extra_(rows % shards) {}

  std::uint64_t rows_of(std::uint64_t shard) const noexcept { return base_ + (shard < extra_ ? 1 : 0); }
  std::uint64_t first_row_of(std::uint64_t shard) const noexcept {
    return shard * base_ + std::min(shard, extra_);
  }

  std::uint64_t shard_of(std::uint64_t row) const noexcept {
    const std::uint64_t in_long_shards = extra_ * (base_ + 1);
    return row < in_long_shards ? row / (base_ + 1) : extra_ + (row - in_long_shards) / base_;
  }

 private:
  std::uint64_t base_;
  std::uint64_t extra_;
};

}  // namespace capstan::shard
