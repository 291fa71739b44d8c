// blocks.cuh -- runs a body by blocks of threads that share memory: by a GPU's kernel, or by a stand-in's
// thread. Without CUDA this is C++ for the latter alone.
#pragma once

#ifdef __CUDACC__
#include <cuda_runtime.h>

#include "gpu/cuda_call.hpp"
#endif

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "gpu/both.hpp"
#include "gpu/gpu.hpp"
#include "gpu/real_gpu.hpp"
#include "gpu/stand_in.hpp"

namespace capstan::gpu {

/// What a body sees of its block. A body has kThreads, the type Shared of what its threads share and the type
/// Mine of what each keeps to itself, both without constructors, and is called with a block and its number:
///
///   template <class B> CAPSTAN_BOTH void operator()(const B& block, std::uint32_t number) const {
///     block.each([&](std::uint32_t thread, Mine& mine, Shared& shared) { ... });  // one step of all threads
///     block.each([&](std::uint32_t thread, Mine& mine, Shared& shared) { ... });  // after all have done it
///   }
///
/// Within a step no thread reads what another writes.
template <class Body>
class Block {
 public:
  CAPSTAN_BOTH Block(typename Body::Mine* mine, typename Body::Shared* shared)
      : mine_(mine), shared_(shared) {}

  template <class Step>
  CAPSTAN_BOTH void each(const Step& step) const {
#ifdef __CUDA_ARCH__
    step(threadIdx.x, *mine_, *shared_);
    __syncthreads();
#else
    for (std::uint32_t thread = Body::kThreads; thread-- > 0;) step(thread, mine_[thread], *shared_);
#endif
  }

 private:
  typename Body::Mine* mine_;  // on a GPU this thread's, else those of all
  typename Body::Shared* shared_;
};

#ifdef __CUDACC__
template <class Body>
__global__ void __launch_bounds__(Body::kThreads) each_block_kernel(Body body) {
  __shared__ typename Body::Shared shared;
  typename Body::Mine mine;
  body(Block<Body>(&mine, &shared), blockIdx.x);
}
#endif

/// The same by this thread. What nobody wrote is not a number.
template <class Body>
void each_block_here(const Body& body, std::uint32_t blocks) {
  struct Threads {
    std::array<typename Body::Mine, Body::kThreads> mine;
    typename Body::Shared shared;
  };
  static_assert(std::is_trivially_copyable_v<Threads>);
  const auto threads = std::make_unique_for_overwrite<Threads>();
  for (std::uint32_t number = blocks; number-- > 0;) {
    std::memset(static_cast<void*>(threads.get()), 0xFF, sizeof(Threads));
    body(Block<Body>(threads->mine.data(), &threads->shared), number);
  }
}

// The two are two functions, for a program that has both.
#ifdef __CUDACC__
inline namespace with_cuda {
#else
inline namespace without_cuda {
#endif

/// body(block, number) for all numbers below `blocks`, in any order. REQUIRES: blocks < 2^31; the calling
/// thread's device is the stream's (On).
template <class Body>
void each_block(const Stream& stream, const Body& body, std::uint32_t blocks) {
  if (blocks == 0) return;
  if (stream.stand_in() != nullptr) {
    stream.stand_in()->launch([body, blocks] { each_block_here(body, blocks); });
    return;
  }
#ifdef __CUDACC__
  each_block_kernel<<<blocks, Body::kThreads, 0, static_cast<cudaStream_t>(stream.handle())>>>(body);
  check(cudaGetLastError(), "a kernel's launch");
#endif
}

}  // namespace with_cuda or without_cuda
}  // namespace capstan::gpu
