// each.cuh -- runs a body of row_bodies.hpp for every number: by a GPU's kernel, or by a stand-in's thread.
// Without CUDA this is C++ for the latter alone.
#pragma once

#ifdef __CUDACC__
#include <cuda_runtime.h>

#include "gpu/cuda_call.hpp"
#endif

#include <cstdint>
#include <utility>

#include "gpu/gpu.hpp"
#include "gpu/real_gpu.hpp"
#include "gpu/stand_in.hpp"

namespace capstan::gpu {

inline constexpr std::uint32_t kThreads = 256;

#ifdef __CUDACC__
/// Of one thread kTogether loads are in flight at once: the numbers of a block are neighbours, those of a
/// thread kThreads apart, so that what a warp reads at once lies together.
template <int kTogether, class Body>
__global__ void __launch_bounds__(kThreads) each_number(Body body, std::uint32_t count) {
  using Found = decltype(body.find(0u));
  using Read = decltype(body.load(0u, std::declval<Found>()));
  const std::uint32_t first = blockIdx.x * (kThreads * kTogether) + threadIdx.x;
  Found found[kTogether];
  Read read[kTogether];
#pragma unroll
  for (int k = 0; k < kTogether; ++k) {
    if (const std::uint32_t number = first + k * kThreads; number < count) found[k] = body.find(number);
  }
#pragma unroll
  for (int k = 0; k < kTogether; ++k) {
    if (const std::uint32_t number = first + k * kThreads; number < count) {
      read[k] = body.load(number, found[k]);
    }
  }
#pragma unroll
  for (int k = 0; k < kTogether; ++k) {
    if (const std::uint32_t number = first + k * kThreads; number < count) {
      body.store(number, found[k], read[k]);
    }
  }
}
#endif

/// The same by this thread. Numbers that are found and loaded together are far apart, so that a body that
/// counts on an order does not get it.
template <int kTogether, class Body>
void each_here(const Body& body, std::uint32_t count) {
  using Found = decltype(body.find(0U));
  using Read = decltype(body.load(0U, std::declval<Found>()));
  const std::uint32_t apart = (count - 1) / kTogether + 1;
  for (std::uint32_t first = apart; first-- > 0;) {
    Found found[kTogether];
    Read read[kTogether];
    const auto of_each = [&](const auto& step) {
      for (std::uint32_t k = 0, number = first; k < kTogether && number < count; ++k, number += apart) {
        step(k, number);
      }
    };
    of_each([&](std::uint32_t k, std::uint32_t number) { found[k] = body.find(number); });
    of_each([&](std::uint32_t k, std::uint32_t number) { read[k] = body.load(number, found[k]); });
    of_each([&](std::uint32_t k, std::uint32_t number) { body.store(number, found[k], read[k]); });
  }
}

// The two are two functions, for a program that has both.
#ifdef __CUDACC__
inline namespace with_cuda {
#else
inline namespace without_cuda {
#endif

/// REQUIRES: count < 2^31; the calling thread's device is the stream's (On).
template <int kTogether, class Body>
void each(const Stream& stream, const Body& body, std::uint32_t count) {
  if (count == 0) return;
  if (stream.stand_in() != nullptr) {
    stream.stand_in()->launch([body, count] { each_here<kTogether>(body, count); });
    return;
  }
#ifdef __CUDACC__
  const std::uint32_t blocks = (count - 1) / (kThreads * kTogether) + 1;
  each_number<kTogether><<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream.handle())>>>(body, count);
  check(cudaGetLastError(), "a kernel's launch");
#endif
}

}  // namespace with_cuda or without_cuda
}  // namespace capstan::gpu
