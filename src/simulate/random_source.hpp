// random_source.hpp -- random numbers that depend only on the seed, not on the standard library.
#pragma once

#include <cmath>
#include <cstdint>

namespace capstan::simulate {

/// SplitMix64 (Steele, Lea, Flood 2014). The distributions of the standard library differ between
/// implementations, so a seed would not repeat a simulation elsewhere. Used by one thread.
class RandomSource {
 public:
  explicit RandomSource(std::uint64_t seed) : state_(seed) {}

  /// Returns a uniform number in [0, 1).
  double uniform() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
  /// Returns a number of the exponential distribution: the time between two events of a Poisson process.
  double exponential(double mean) { return -mean * std::log1p(-uniform()); }

 private:
  std::uint64_t state_;
};

}  // namespace capstan::simulate
