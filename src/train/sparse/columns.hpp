// columns.hpp -- features of the columns of click logs.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "train/counter_rng.hpp"

namespace capstan::train {

/// Number of an integer's bucket. Integers of -2 to 2 have buckets of their own. The others are divided at
/// the powers of sqrt(2), by sign and magnitude.
inline std::int64_t bucket_of(std::int64_t x) {
  const double magnitude = std::abs(static_cast<double>(x));
  if (magnitude <= 2) return x;
  int exponent = 0;
  const double mantissa = std::frexp(magnitude, &exponent);  // in [0.5, 1)
  const std::int64_t bucket = 2 * std::int64_t{exponent} + (mantissa * std::numbers::sqrt2 >= 1 ? 1 : 0);
  return x > 0 ? bucket : -bucket;
}

/// Hash of a category in a column.
inline std::uint64_t category_hash(std::uint64_t column, std::uint64_t category) {
  return mix64((column << 32) + category);
}

}  // namespace capstan::train
