// partitioners.hpp -- functions that decide into how many shards a variable is divided. The formulas are
// TensorFlow's.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capstan/detail/export.hpp"
#include "capstan/dtype.hpp"

namespace capstan {

/// Name of a shard in listings, checkpoints and errors: "w/part_0", or "w" if `w` has one shard.
inline std::string shard_name(const std::string& variable, std::uint64_t shard, std::uint64_t shards) {
  return shards == 1 ? variable : variable + "/part_" + std::to_string(shard);
}

/// Result of a partitioner: a number of shards along axis 0, or one number per axis, where all numbers except
/// the first must be 1.
struct Partitions {
  std::vector<std::int64_t> axes;
  Partitions(std::int64_t shards) : axes{shards} {}                            // NOLINT: implicit
  Partitions(std::vector<std::int64_t> numbers) : axes(std::move(numbers)) {}  // NOLINT: implicit
};

/// Called with a variable's shape and dtype, except for scalars and colocated variables. It does not receive
/// the number of ps: capture cluster.count(Role::ps) if it needs that. The strategy creates min(shards, rows)
/// shards, and rejects a number below 1, or above 1 for an axis other than the first.
///
/// The partitioners below throw Error(invalid_argument) for an argument below 1.
using Partitioner = std::function<Partitions(std::span<const std::int64_t> shape, DType dtype)>;

/// min(num_shards, rows).
struct CAPSTAN_API FixedShardsPartitioner {
  std::int64_t num_shards = 1;
  std::int64_t operator()(std::span<const std::int64_t> shape, DType dtype) const;
};

/// Chooses the number of shards so that each has about `min_shard_bytes`, at most `max_shards`: max(1,
/// min(rows, max_shards, ceil(bytes / min_shard_bytes))). Because of rounding up, shards may be smaller: a
/// variable of 1.5 * min_shard_bytes has two shards of 0.75 * min_shard_bytes each.
struct CAPSTAN_API MinSizePartitioner {
  std::int64_t min_shard_bytes = 256 << 10;
  std::int64_t max_shards = 1;
  std::int64_t operator()(std::span<const std::int64_t> shape, DType dtype) const;
};

/// The fewest shards of at most `max_shard_bytes` each (a larger row is a shard by itself), at most
/// `max_shards`: ceil(rows / max(1, floor(max_shard_bytes / row_bytes))).
struct CAPSTAN_API MaxSizePartitioner {
  std::int64_t max_shard_bytes = 0;
  std::int64_t max_shards = std::numeric_limits<std::int64_t>::max();
  std::int64_t operator()(std::span<const std::int64_t> shape, DType dtype) const;
};

}  // namespace capstan
