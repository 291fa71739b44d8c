// initializers.hpp -- first values of a variable, made on the ps that owns them.
#pragma once

#include <cstdint>

namespace capstan {

/// Sent over the wire: add at the end, never renumber.
enum class InitializerKind : std::uint8_t { constant = 1, uniform = 2, normal = 3 };

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
/// In [low, high).
inline Initializer uniform(double low, double high, std::uint64_t seed = 0) {
  return {InitializerKind::uniform, low, high, seed};
}
inline Initializer normal(double mean, double stddev, std::uint64_t seed = 0) {
  return {InitializerKind::normal, mean, stddev, seed};
}

}  // namespace initializers
}  // namespace capstan
