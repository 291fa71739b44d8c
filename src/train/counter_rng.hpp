// counter_rng.hpp -- random numbers as a function of (seed, stream, index): every rank can draw any of them.
#pragma once

#include <cstdint>

namespace capstan::train {

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every bit of the result depends on every bit of
/// `x`.
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

class CounterRng {
 public:
  constexpr CounterRng(std::uint64_t seed, std::uint64_t stream) noexcept
      : key_(mix64(mix64(seed + kWeyl) + stream * kWeyl)) {}

  constexpr std::uint64_t bits(std::uint64_t index) const noexcept {
    return mix64(key_ + (index + 1) * kWeyl);
  }

  /// Uniform in 0 .. limit - 1, with a bias below limit / 2^32. REQUIRES: 0 < limit <= 2^32.
  constexpr std::uint64_t below(std::uint64_t limit, std::uint64_t index) const noexcept {
    return (bits(index) >> 32) * limit >> 32;
  }

 private:
  static constexpr std::uint64_t kWeyl = 0x9e3779b97f4a7c15U;  // 2^64 / golden ratio
  std::uint64_t key_;
};

}  // namespace capstan::train
