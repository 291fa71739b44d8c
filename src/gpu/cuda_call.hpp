// cuda_call.hpp -- converts CUDA error codes to Error. Needs CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include "capstan/error.hpp"

namespace capstan::gpu {

inline void check(cudaError_t answer, const char* call, Where where = Where::here()) {
  if (answer == cudaSuccess) return;
  const Code code = answer == cudaErrorMemoryAllocation ? Code::resource_exhausted : Code::internal;
  (void)cudaGetLastError();  // clears the error, so that the next call does not report it again
  throw call_failed(call, cudaGetErrorString(answer), where, code);
}

}  // namespace capstan::gpu
