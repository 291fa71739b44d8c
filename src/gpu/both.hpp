// both.hpp -- macros for functions and loops that compile for GPUs and CPUs, and atomics for both.
#pragma once

#include <cstdint>
#include <type_traits>

#ifdef __CUDACC__
#define CAPSTAN_BOTH __host__ __device__ __forceinline__
#define CAPSTAN_UNROLL _Pragma("unroll")
#else
#define CAPSTAN_BOTH inline
#define CAPSTAN_UNROLL
#endif

namespace capstan::gpu {

// Atomic with respect to other threads of a GPU. On a CPU only one thread at a time may call them.

CAPSTAN_BOTH void atomic_max(std::uint32_t* at, std::uint32_t value) {
#ifdef __CUDA_ARCH__
  atomicMax(at, value);
#else
  if (value > *at) *at = value;
#endif
}

CAPSTAN_BOTH void atomic_min(std::uint32_t* at, std::uint32_t value) {
#ifdef __CUDA_ARCH__
  atomicMin(at, value);
#else
  if (value < *at) *at = value;
#endif
}

/// Sum; integers wrap around.
template <class T>
CAPSTAN_BOTH T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

/// Adds `value` to `*at` and returns the previous value.
template <class T>
CAPSTAN_BOTH T atomic_add(T* at, T value) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, std::int64_t>) {
    // In two's complement, signed and unsigned addition give the same bits.
    return static_cast<T>(
        atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value)));
  } else {
    return atomicAdd(at, value);
  }
#else
  const T before = *at;
  *at = sum_of(before, value);
  return before;
#endif
}

/// Adds kCount values to the values at `to`, each atomically. REQUIRES: `to` is aligned to kCount values.
template <int kCount, class T>
CAPSTAN_BOTH void atomic_add_each(T* to, const T* values) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if constexpr (std::is_same_v<T, float> && kCount == 4) {
    // One transaction instead of four, which matters if many gradients are added to the same row.
    atomicAdd(reinterpret_cast<float4*>(to), make_float4(values[0], values[1], values[2], values[3]));
  } else
#endif
  {
    for (int j = 0; j < kCount; ++j) atomic_add(to + j, values[j]);
  }
}

}  // namespace capstan::gpu
