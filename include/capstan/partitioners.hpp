// partitioners.hpp -- into how many shards a variable is cut. The formulas are TensorFlow's.
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

/// What a shard is called in listings, checkpoints and errors: "w/part_0", or "w" where `w` has one shard.
inline std::string shard_name(const std::string& variable, std::uint64_t shard, std::uint64_t shards) {
  return shards == 1 ? variable : variable + "/part_" + std::to_string(shard);
}

/// What a partitioner returns: a number of shards along axis 0, or one number for each axis, of which all but
/// the first are 1.
struct Partitions {
  std::vector<std::int64_t> axes;
  Partitions(std::int64_t shards) : axes{shards} {}                            // NOLINT: implicit
  Partitions(std::vector<std::int64_t> numbers) : axes(std::move(numbers)) {}  // NOLINT: implicit
};

/// Asked with a variable's shape and dtype; not for a scalar, nor for a variable that is colocated. It does
/// not know the number of ps: pass cluster.count(Role::ps). The strategy takes min(shards, rows). Fewer
/// than 1, or more than 1 along another axis than the first, is refused.
///
/// Those that follow throw Error(invalid_argument) for an argument that is less than 1.
using Partitioner = std::function<Partitions(std::span<const std::int64_t> shape, DType dtype)>;

/// min(num_shards, rows).
struct CAPSTAN_API FixedShardsPartitioner {
  std::int64_t num_shards = 1;
  std::int64_t operator()(std::span<const std::int64_t> shape, DType dtype) const;
};

/// As many shards as make each about `min_shard_bytes`, at most `max_shards`:
/// max(1, min(rows, max_shards, ceil(bytes / min_shard_bytes))). Rounding up makes shards that are smaller
/// than min_shard_bytes: of 1.5 times as many bytes, two shards of 0.75 times.
struct CAPSTAN_API MinSizePartitioner {
  std::int64_t min_shard_bytes = 256 << 10;
  std::int64_t max_shards = 1;
  std::int64_t operator()(std::span<const std::int64_t> shape, DType dtype) const;
};

/// As few shards as keep each within `max_shard_bytes` (a row that is larger is a shard by itself), at most
/// `max_shards`: ceil(rows / max(1, floor(max_shard_bytes / row_bytes))).
struct CAPSTAN_API MaxSizePartitioner {
  std::int64_t max_shard_bytes = 0;
  std::int64_t max_shards = std::numeric_limits<std::int64_t>::max();
  std::int64_t operator()(std::span<const std::int64_t> shape, DType dtype) const;
};

}  // namespace capstan
