// gpu_flags.hpp -- flags with which a rank sees GPUs: none where it has some, stand-ins elsewhere.
#pragma once

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"

namespace capstan {

/// With CAPSTAN_TEST_GPU in the environment there are no stand-ins, so that a test fails without a GPU.
inline std::vector<std::pair<std::string, std::string>> gpu_flags(int gpus = 1) {
  const bool real = std::getenv("CAPSTAN_TEST_GPU") != nullptr;
  if (real || (!gpu::are_stand_ins() && gpu::count() >= gpus)) return {};
  return {{"gpu-stand-ins", std::to_string(gpus)}};
}

/// Undone when a test has ended, after everything on a GPU has gone.
inline void forget_stand_ins() {
  if (gpu::are_stand_ins()) gpu::use_stand_ins(0);
}

}  // namespace capstan
