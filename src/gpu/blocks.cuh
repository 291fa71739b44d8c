// blocks.cuh -- runs a body on blocks of threads that share memory, as a GPU kernel or on a stand-in's
// thread. Without CUDA it is compiled as C++ for stand-ins only.
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

/// A block of threads, as its body sees it. A body has kThreads, the type Shared of the block's shared memory
/// and the type ThreadState of each thread's registers, both trivial. It is called with a block and its
/// number:
///
///   template <class B> CAPSTAN_BOTH void operator()(const B& block, std::uint32_t number) const {
///     block.each([&](std::uint32_t thread, ThreadState& state, Shared& shared) { ... });  // all threads
///     block.each([&](std::uint32_t thread, ThreadState& state, Shared& shared) { ... });  // after a barrier
///   }
///
/// Within a step no thread may read what another one writes.
template <class Body>
class Block {
 public:
  CAPSTAN_BOTH Block(typename Body::ThreadState* states, typename Body::Shared* shared)
      : states_(states), shared_(shared) {}

  template <class Step>
  CAPSTAN_BOTH void each(const Step& step) const {
#ifdef __CUDA_ARCH__
    step(threadIdx.x, *states_, *shared_);
    __syncthreads();
#else
    for (std::uint32_t thread = Body::kThreads; thread-- > 0;) step(thread, states_[thread], *shared_);
#endif
  }

 private:
  typename Body::ThreadState* states_;  // on a GPU the state of this thread, otherwise of all threads
  typename Body::Shared* shared_;
};

#ifdef __CUDACC__
template <class Body>
__global__ void __launch_bounds__(Body::kThreads) each_block_kernel(Body body) {
  __shared__ typename Body::Shared shared;
  typename Body::ThreadState state;
  body(Block<Body>(&state, &shared), blockIdx.x);
}
#endif

/// Runs `body` on the calling thread. Shared memory and thread states start as NaN, to expose reads of
/// uninitialized variables.
template <class Body>
void each_block_here(const Body& body, std::uint32_t blocks) {
  struct Threads {
    std::array<typename Body::ThreadState, Body::kThreads> states;
    typename Body::Shared shared;
  };
  static_assert(std::is_trivially_copyable_v<Threads>);
  const auto threads = std::make_unique_for_overwrite<Threads>();
  for (std::uint32_t number = blocks; number-- > 0;) {
    std::memset(static_cast<void*>(threads.get()), 0xFF, sizeof(Threads));
    body(Block<Body>(threads->states.data(), &threads->shared), number);
  }
}

// Two inline namespaces, because a program may contain both versions of each_block.
#ifdef __CUDACC__
inline namespace with_cuda {
#else
inline namespace without_cuda {
#endif

/// Enqueues body(block, number) for all numbers below `blocks`, in any order. REQUIRES: blocks < 2^31; the
/// stream's device is selected on the calling thread (DeviceGuard).
template <class Body>
void each_block(const Stream& stream, const Body& body, std::uint32_t blocks) {
  if (blocks == 0) return;
  if (stream.stand_in() != nullptr) {
    stream.stand_in()->launch([body, blocks] { each_block_here(body, blocks); });
    return;
  }
#ifdef __CUDACC__
  each_block_kernel<<<blocks, Body::kThreads, 0, static_cast<cudaStream_t>(stream.handle())>>>(body);
  check(cudaGetLastError(), "kernel launch");
#endif
}

}  // namespace with_cuda or without_cuda
}  // namespace capstan::gpu
