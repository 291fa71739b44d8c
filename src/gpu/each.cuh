// each.cuh -- runs a body of row_bodies.hpp for every number, as a GPU kernel or on a stand-in's thread.
// Without CUDA it is compiled as C++ for stand-ins only.
#pragma once

#ifdef __CUDACC__
#include <cuda_runtime.h>

#include "gpu/cuda_call.hpp"
#endif

#include <algorithm>
#include <cstdint>
#include <utility>

#include "gpu/gpu.hpp"
#include "gpu/real_gpu.hpp"
#include "gpu/stand_in.hpp"

namespace capstan::gpu {

inline constexpr std::uint32_t kThreads = 256;

#ifdef __CUDACC__
/// Returns true if each_number was compiled to wait for the stream's previous kernel on this device.
inline bool starts_early(int device) {
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
  constexpr int kCompiledFor[] = {__CUDA_ARCH_LIST__};
  return std::ranges::any_of(kCompiledFor,
                             [&](int one) { return one >= 900 && one <= major * 100 + minor * 10; });
}

/// Each thread keeps kTogether loads in flight. Adjacent threads handle adjacent numbers, and the numbers of
/// a thread are kThreads apart, so that the loads of a warp coalesce. From compute capability 9.0 on, blocks
/// start while the last ones of the stream's previous kernel run, and wait for the end of that kernel.
template <int kTogether, class Body>
__global__ void __launch_bounds__(kThreads) each_number(Body body, std::uint32_t count) {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
#endif
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

/// Runs `body` on the calling thread. Numbers whose loads are in flight together are far apart, so that tests
/// detect a body that depends on the order.
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

// Two inline namespaces, because a program may contain both versions of each.
#ifdef __CUDACC__
inline namespace with_cuda {
#else
inline namespace without_cuda {
#endif

/// Enqueues the body for all numbers below `count`. REQUIRES: count < 2^31; the stream's device is selected
/// on the calling thread (DeviceGuard).
template <int kTogether, class Body>
void each(const Stream& stream, const Body& body, std::uint32_t count) {
  if (count == 0) return;
  if (stream.stand_in() != nullptr) {
    stream.stand_in()->launch([body, count] { each_here<kTogether>(body, count); });
    return;
  }
#ifdef __CUDACC__
  const std::uint32_t blocks = (count - 1) / (kThreads * kTogether) + 1;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = blocks;
  launch.blockDim = kThreads;
  launch.stream = static_cast<cudaStream_t>(stream.handle());
  launch.attrs = &attribute;
  launch.numAttrs = starts_early(stream.device()) ? 1 : 0;
  check(cudaLaunchKernelEx(&launch, each_number<kTogether, Body>, body, count), "cudaLaunchKernelEx");
#endif
}

}  // namespace with_cuda or without_cuda
}  // namespace capstan::gpu
