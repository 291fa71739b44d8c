// each.cuh -- runs a body of row_bodies.hpp for every number.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <utility>

#include "device/cuda_call.hpp"
#include "device/gpu.hpp"

namespace capstan::device {

inline constexpr std::uint32_t kThreads = 256;

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

/// REQUIRES: count < 2^31; the calling thread's device is the stream's (On).
template <int kTogether, class Body>
void each(const Stream& stream, const Body& body, std::uint32_t count) {
  if (count == 0) return;
  const std::uint32_t blocks = (count - 1) / (kThreads * kTogether) + 1;
  each_number<kTogether><<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream.handle())>>>(body, count);
  check(cudaGetLastError(), "a kernel's launch");
}

}  // namespace capstan::device
