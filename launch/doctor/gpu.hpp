// gpu.hpp -- whether this host has GPUs, and what drives them.
#pragma once

#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

struct GpuLook {
  bool driver = false;       ///< NVIDIA's kernel driver is loaded
  std::string failure = {};  ///< its user-space half did not work, and why
  int cuda = 0;              ///< 12040 is 12.4
  int nccl = 0;              ///< 22005 is 2.20.5; 0: there is no libnccl
  std::vector<std::string> devices = {};
  bool peer_memory = false;  ///< adapters may read and write GPU memory (nvidia_peermem)
};

/// The child: asks CUDA's driver and NCCL, found by name, and prints JSON. Returns the exit code.
int look_at_gpus();

Finding check_gpus(const Request& request);
Finding judge_gpus(const GpuLook& look);

}  // namespace capstan::launch::doctor
