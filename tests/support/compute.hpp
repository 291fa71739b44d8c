// compute.hpp -- stands in for the computation of a training step.
#pragma once

#include <chrono>
#include <thread>

namespace capstan {

/// Blocks for `time`, so that faults and saves can fall between two pushes.
inline void compute_for(std::chrono::nanoseconds time) {
  std::this_thread::sleep_for(time);  // not a busy loop: test machines have fewer cores than ranks
}

}  // namespace capstan
