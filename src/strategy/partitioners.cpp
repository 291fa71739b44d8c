// partitioners.cpp -- the formulas of TensorFlow's three partitioners.
#include "capstan/partitioners.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>

#include "capstan/error.hpp"

namespace capstan {
namespace {

void require_positive(std::int64_t value, const char* name) {
  if (value < 1) {
    throw Error(Code::invalid_argument,
                std::string(name) + " is " + std::to_string(value) + "; it must be positive");
  }
}

std::int64_t bytes_of(std::span<const std::int64_t> shape, DType dtype) {
  return std::accumulate(shape.begin(), shape.end(), static_cast<std::int64_t>(size_of(dtype)),
                         std::multiplies<>());
}

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return a / b + (a % b == 0 ? 0 : 1); }

}  // namespace

std::int64_t FixedShardsPartitioner::operator()(std::span<const std::int64_t> shape, DType) const {
  require_positive(num_shards, "num_shards");
  if (shape.empty()) return 1;
  return std::min(num_shards, shape[0]);
}

std::int64_t MinSizePartitioner::operator()(std::span<const std::int64_t> shape, DType dtype) const {
  require_positive(min_shard_bytes, "min_shard_bytes");
  require_positive(max_shards, "max_shards");
  if (shape.empty()) return 1;
  const std::int64_t wanted = divide_up(bytes_of(shape, dtype), min_shard_bytes);
  return std::max<std::int64_t>(1, std::min({shape[0], max_shards, wanted}));
}

std::int64_t MaxSizePartitioner::operator()(std::span<const std::int64_t> shape, DType dtype) const {
  require_positive(max_shard_bytes, "max_shard_bytes");
  require_positive(max_shards, "max_shards");
  const std::int64_t bytes = bytes_of(shape, dtype);
  if (shape.empty() || bytes == 0) return 1;
  const std::int64_t row_bytes = bytes / shape[0];
  const std::int64_t rows_per_shard = std::max<std::int64_t>(1, max_shard_bytes / row_bytes);
  return std::min(divide_up(shape[0], rows_per_shard), max_shards);
}

}  // namespace capstan
