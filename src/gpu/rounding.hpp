// rounding.hpp -- conversions between the dtype of a table and the dtype of its arithmetic.
#pragma once

#ifdef __CUDACC__
#include <cuda_fp16.h>
#endif

#include <cstdint>
#include <type_traits>

#include "base/with_type.hpp"
#include "capstan/dtype.hpp"
#include "gpu/both.hpp"

namespace capstan::gpu {

/// Pseudorandom bits for an element of a table and a seed: SplitMix64 (Steele, Lea, Flood: "Fast splittable
/// pseudorandom number generators", OOPSLA 2014). Deterministic.
CAPSTAN_BOTH std::uint32_t random_bits(std::uint64_t seed, std::uint64_t element) {
  std::uint64_t z = seed + (element + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return static_cast<std::uint32_t>((z ^ (z >> 31)) >> 32);
}

/// Converts to the type of the arithmetic. On a GPU, float16 uses hardware instructions.
template <class T>
CAPSTAN_BOTH Arithmetic<T> widened(T x) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, float16>) return __half2float(__ushort_as_half(x.bits()));
#endif
  return static_cast<Arithmetic<T>>(x);
}

template <class T>
CAPSTAN_BOTH T nearest(Arithmetic<T> x) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, float16>) return T::from_bits(__half_as_ushort(__float2half_rn(x)));
#endif
  return T(x);
}

/// Rounds to one of the two adjacent 16-bit numbers at random. The closer one is more likely, so that the
/// expected value is x. Values out of range round to nearest.
template <class Half>
CAPSTAN_BOTH Half round_stochastically(float x, std::uint32_t random) {
  const Half near = nearest<Half>(x);
  const float back = gpu::widened(near);
  const bool is_finite = back - back == 0;
  if (!is_finite || back == x) return near;
  // `near` has the sign of x and is one of the two adjacent numbers.
  const bool rounded_away_from_zero = (back < 0 ? -back : back) > (x < 0 ? -x : x);
  const auto toward_zero = static_cast<std::uint16_t>(near.bits() - (rounded_away_from_zero ? 1 : 0));
  const float low = gpu::widened(Half::from_bits(toward_zero));
  const Half away = Half::from_bits(static_cast<std::uint16_t>(toward_zero + 1));
  const float high = gpu::widened(away);
  if (high - high != 0) return near;
  const float share = (x - low) / (high - low);
  return static_cast<float>(random >> 8) * 0x1p-24F < share ? away : Half::from_bits(toward_zero);
}

/// How results in float are rounded to a table of 16-bit values or int8 rows.
struct Rounding {
  bool stochastic = false;
  std::uint64_t seed = 0;  // differs between updates
};

template <class T>
CAPSTAN_BOTH T narrowed(Arithmetic<T> x, const Rounding& rounding, std::uint64_t element) {
  if constexpr (std::is_same_v<T, Arithmetic<T>>) {
    return x;
  } else {
    if (!rounding.stochastic) return nearest<T>(x);
    return round_stochastically<T>(x, random_bits(rounding.seed, element));
  }
}

}  // namespace capstan::gpu
