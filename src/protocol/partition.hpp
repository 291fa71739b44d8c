// partition.hpp -- which shard holds a row: the "div" rule of TensorFlow.
#pragma once

#include <algorithm>
#include <cstdint>

namespace capstan::protocol {

/// `rows` rows cut into `shards` contiguous pieces along axis 0; the first rows % shards of them have one
/// more. 10 rows in 4 shards: 3, 3, 2, 2.
class DivPartition {
 public:
  /// REQUIRES: 1 <= shards <= rows, or 1 shard of no rows.
  DivPartition(std::uint64_t rows, std::uint64_t shards)
      : base_(rows / shards),
        extra_(rows % shards),
        guess_(static_cast<double>(shards) / static_cast<double>(rows)),
        last_(shards - 1) {}

  std::uint64_t rows_of(std::uint64_t shard) const noexcept { return base_ + (shard < extra_ ? 1 : 0); }
  std::uint64_t first_row_of(std::uint64_t shard) const noexcept {
    return shard * base_ + std::min(shard, extra_);
  }

  std::uint64_t shard_of(std::uint64_t row) const noexcept {
    // All shards have nearly the same size, so row * shards / rows is the answer or next to it; a
    // multiplication costs a tenth of a division.
    std::uint64_t shard = static_cast<std::uint64_t>(static_cast<double>(row) * guess_);
    shard = std::min(shard, last_);
    while (row < first_row_of(shard)) --shard;
    while (row >= first_row_of(shard) + rows_of(shard)) ++shard;
    return shard;
  }

 private:
  std::uint64_t base_;
  std::uint64_t extra_;
  double guess_;
  std::uint64_t last_;
};

}  // namespace capstan::protocol
