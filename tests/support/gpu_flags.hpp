// gpu_flags.hpp -- flags that give a rank GPUs: none if it has real ones, stand-ins otherwise.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"

namespace capstan {

/// With CAPSTAN_TESTS_GPU set, stand-ins are never used, so a test fails on a machine without a GPU.
inline std::vector<std::pair<std::string, std::string>> gpu_flags(int gpus = 1) {
  const bool real = std::getenv("CAPSTAN_TESTS_GPU") != nullptr;
  if (real || (!gpu::are_stand_ins() && gpu::count() >= gpus)) return {};
  return {{"gpu-stand-ins", std::to_string(gpus)}};
}

/// Removes the stand-ins at the end of a test, after all objects on a GPU were destroyed.
inline void forget_stand_ins() {
  if (gpu::are_stand_ins()) gpu::use_stand_ins(0);
}

}  // namespace capstan
