// partition.hpp -- maps rows to shards by TensorFlow's "div" rule.
#pragma once

#include <algorithm>
#include <cstdint>

namespace capstan::protocol {

/// Divides `rows` rows along axis 0 into `shards` contiguous shards; the first rows % shards of them have
/// one additional row. 10 rows in 4 shards: 3, 3, 2, 2.
class DivPartition {
 public:
  /// REQUIRES: 1 <= shards <= rows, or 1 shard with no rows.
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
    // Shards differ by at most one row, so row * shards / rows is the number of the shard or of an adjacent
    // one. A multiplication costs a tenth of a division.
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
