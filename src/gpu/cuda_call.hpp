// cuda_call.hpp -- CUDA's answer as an Error. Only where there is CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include "capstan/error.hpp"

namespace capstan::gpu {

inline void check(cudaError_t answer, const char* call, Where where = Where::here()) {
  if (answer == cudaSuccess) return;
  const Code code = answer == cudaErrorMemoryAllocation ? Code::resource_exhausted : Code::internal;
  (void)cudaGetLastError();  // it is told here, and the next call is not to tell it again
  throw call_failed(call, cudaGetErrorString(answer), where, code);
}

}  // namespace capstan::gpu
