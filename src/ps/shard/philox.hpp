// philox.hpp -- counter-based random numbers: the value at an index depends only on the seed and the index.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace capstan::ps {

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
inline std::array<std::uint32_t, 4> philox4x32(std::uint64_t counter, std::uint64_t key,
                                               std::uint64_t counter_high = 0) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  std::uint32_t c0 = static_cast<std::uint32_t>(counter), c1 = static_cast<std::uint32_t>(counter >> 32);
  std::uint32_t c2 = static_cast<std::uint32_t>(counter_high),
                c3 = static_cast<std::uint32_t>(counter_high >> 32);
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kMultiplier0 * c0, p1 = kMultiplier1 * c2;
    const std::uint32_t n0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const std::uint32_t n2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<std::uint32_t>(p1);
    c3 = static_cast<std::uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return {c0, c1, c2, c3};
}

/// Returns a number in [0, 1) with 53 random bits.
inline double unit(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>((std::uint64_t{high} << 21) ^ (low >> 11)) * 0x1p-53;
}

inline double uniform_at(std::uint64_t index, std::uint64_t seed) {
  const auto block = philox4x32(index / 2, seed);
  return index % 2 == 0 ? unit(block[0], block[1]) : unit(block[2], block[3]);
}

/// Elements 2k and 2k+1 are the two results of one Box-Muller transform.
inline std::array<double, 2> normal_pair(std::uint64_t pair, std::uint64_t seed) {
  const auto block = philox4x32(pair, seed);
  const double radius = std::sqrt(-2.0 * std::log(1.0 - unit(block[0], block[1])));
  const double angle = 2.0 * std::numbers::pi * unit(block[2], block[3]);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// Returns a standard normal number, redrawn until it is in [-2, 2].
inline double truncated_normal_at(std::uint64_t index, std::uint64_t seed) {
  for (std::uint64_t draw = 1;; ++draw) {
    const auto block = philox4x32(index, seed, draw);
    const double radius = std::sqrt(-2.0 * std::log(1.0 - unit(block[0], block[1])));
    const double value = radius * std::cos(2.0 * std::numbers::pi * unit(block[2], block[3]));
    if (std::fabs(value) <= 2) return value;
  }
}

}  // namespace capstan::ps
