// gpu.hpp -- GPUs of this host, with driver and library versions.
#pragma once

#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

/// Properties that the child process reported, and properties read from files of the kernel driver.
struct GpuProbe {
  bool driver = false;       ///< the NVIDIA kernel driver is loaded
  std::string failure = {};  ///< why the query of CUDA and NCCL failed; "" on success
  int cuda = 0;              ///< newest CUDA version that the driver supports: 12040 is 12.4
  int nccl = 0;              ///< 22005 is 2.20.5; 0: no libnccl
  std::vector<std::string> devices = {};
  bool peer_memory = false;  ///< nvidia_peermem is loaded: adapters can access GPU memory
};

/// Runs in the child process: loads the CUDA driver and NCCL with dlopen, queries them, and prints the result
/// as JSON. Returns the exit code.
int run_gpu_probe();

Finding check_gpus(const Request& request);
Finding judge_gpus(const GpuProbe& probe);

}  // namespace capstan::launch::doctor
