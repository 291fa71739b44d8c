// cuda_call.hpp -- CUDA's answer as an Error. Only where there is CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include "capstan/error.hpp"

namespace capstan::device {

inline void check(cudaError_t answer, const char* call, Where where = Where::here()) {
  if (answer == cudaSuccess) return;
  const Code code = answer == cudaErrorMemoryAllocation ? Code::resource_exhausted : Code::internal;
  (void)cudaGetLastError();  // it is told here, and the next call is not to tell it again
  throw call_failed(call, cudaGetErrorString(answer), where, code);
}

/// Calls of this thread go to `device` while it lives.
class On {
 public:
  explicit On(int device) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ != device) check(cudaSetDevice(device), "cudaSetDevice");
  }
  ~On() { (void)cudaSetDevice(before_); }
  On(const On&) = delete;
  On& operator=(const On&) = delete;

 private:
  int before_ = 0;
};

}  // namespace capstan::device
