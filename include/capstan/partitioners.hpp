// partitioners.hpp -- into how many shards a variable is cut. The formulas are TensorFlow's.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>

#include "capstan/dtype.hpp"

namespace capstan {

/// Number of shards along axis 0, from the variable's shape and dtype. The strategy takes min(result, rows).
/// A result below 1 is refused. A scalar is one shard.
///
/// Those below throw Error(invalid_argument) for an argument below 1.
using Partitioner = std::function<std::int64_t(std::span<const std::int64_t> shape, DType dtype)>;

/// min(num_shards, rows).
struct FixedShardsPartitioner {
  std::int64_t num_shards = 1;
  std::int64_t operator()(std::span<const std::int64_t> shape, DType dtype) const;
};

/// As many shards as make each about `min_shard_bytes`, at most `max_shards`:
/// max(1, min(rows, max_shards, ceil(bytes / min_shard_bytes))). Rounding up makes shards that are smaller
/// than min_shard_bytes: of 1.5 times as many bytes, two shards of 0.75 times.
struct MinSizePartitioner {
  std::int64_t min_shard_bytes = 256 << 10;
  std::int64_t max_shards = 1;
  std::int64_t operator()(std::span<const std::int64_t> shape, DType dtype) const;
};

/// As few shards as keep each within `max_shard_bytes` (a row that is larger is a shard by itself), at most
/// `max_shards`: ceil(rows / max(1, floor(max_shard_bytes / row_bytes))).
struct MaxSizePartitioner {
  std::int64_t max_shard_bytes = 0;
  std::int64_t max_shards = std::numeric_limits<std::int64_t>::max();
  std::int64_t operator()(std::span<const std::int64_t> shape, DType dtype) const;
};

}  // namespace capstan
