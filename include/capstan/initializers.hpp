// initializers.hpp -- first values of a variable, made on the ps that owns them.
#pragma once

#include <cstdint>

namespace capstan {

/// Sent over the wire: add at the end, never renumber.
enum class InitializerKind : std::uint8_t {
  constant = 1,
  uniform = 2,
  normal = 3,
  truncated_normal = 4,
  orthogonal = 5,
  identity = 6,
};

/// Element i of a variable is a function of the seed and of i alone (counter-based: Philox4x32-10, Salmon et
/// al. 2011), whatever the number of shards.
struct Initializer {
  InitializerKind kind = InitializerKind::constant;
  double a = 0;
  double b = 0;
  std::uint64_t seed = 0;
};

namespace initializers {

inline Initializer constant(double value) { return {InitializerKind::constant, value, 0, 0}; }
inline Initializer zeros() { return constant(0); }
inline Initializer ones() { return constant(1); }
/// In [low, high), of the variable's dtype; integers are as likely as each other.
inline Initializer uniform(double low, double high, std::uint64_t seed = 0) {
  return {InitializerKind::uniform, low, high, seed};
}
inline Initializer normal(double mean, double stddev, std::uint64_t seed = 0) {
  return {InitializerKind::normal, mean, stddev, seed};
}
/// A normal distribution of which values more than two `stddev` from `mean` are drawn again.
inline Initializer truncated_normal(double mean, double stddev, std::uint64_t seed = 0) {
  return {InitializerKind::truncated_normal, mean, stddev, seed};
}
/// `gain` times a random matrix whose rows, or columns if there are fewer of them, are orthonormal: Q of the
/// QR decomposition of normal numbers, its signs chosen so that it is uniformly distributed (Mezzadri 2007).
/// All axes but the last together are the matrix's rows. Every ps that owns a shard makes the whole matrix,
/// in double, at a cost of rows x columns x min(rows, columns). For rank 2 or more, of a floating-point
/// dtype.
inline Initializer orthogonal(double gain = 1, std::uint64_t seed = 0) {
  return {InitializerKind::orthogonal, gain, 0, seed};
}
/// `gain` on the diagonal of a matrix, 0 elsewhere. For rank 2.
inline Initializer identity(double gain = 1) { return {InitializerKind::identity, gain, 0, 0}; }

}  // namespace initializers
}  // namespace capstan
