// gpu.cpp -- loads libcuda and libnccl with dlopen in a child process: cuInit may hang on a faulty GPU.
#include "launch/doctor/gpu.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <filesystem>
#include <iostream>

#include "base/command_output.hpp"
#include "base/json.hpp"
#include "capstan/error.hpp"

namespace capstan::launch::doctor {
namespace {

constexpr std::chrono::seconds kCudaTimeout{20};

/// A function of a dynamically loaded library. Throws Error(not_found).
template <class Function>
Function* symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) throw Error(Code::not_found, std::string("dlsym: ") + dlerror());
  return reinterpret_cast<Function*>(found);
}

void require(int status, const char* call) {
  if (status != 0) throw Error(Code::internal, fmt::format("{}: CUDA error {}", call, status));
}

/// Prototypes as in cuda.h, where CUresult and CUdevice have the size of int.
void query_cuda(nlohmann::json& found) {
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == nullptr) throw Error(Code::not_found, std::string("dlopen: ") + dlerror());
  require(symbol<int(unsigned)>(cuda, "cuInit")(0), "cuInit");
  int version = 0;
  require(symbol<int(int*)>(cuda, "cuDriverGetVersion")(&version), "cuDriverGetVersion");
  found["cuda"] = version;
  int count = 0;
  require(symbol<int(int*)>(cuda, "cuDeviceGetCount")(&count), "cuDeviceGetCount");
  for (int device = 0; device < count; ++device) {
    std::array<char, 256> name{};
    require(symbol<int(char*, int, int)>(cuda, "cuDeviceGetName")(name.data(),
                                                                  static_cast<int>(name.size()) - 1, device),
            "cuDeviceGetName");
    found["devices"].push_back(name.data());
  }
}

void query_nccl(nlohmann::json& found) {
  void* nccl = dlopen("libnccl.so.2", RTLD_NOW);
  int version = 0;
  if (nccl != nullptr && symbol<int(int*)>(nccl, "ncclGetVersion")(&version) == 0) found["nccl"] = version;
}

std::string cuda_version(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }
std::string nccl_version(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace

int run_gpu_probe() {
  nlohmann::json found = nlohmann::json::object();
  try {
    query_cuda(found);
    query_nccl(found);
  } catch (const std::exception& error) {
    found["failure"] = error.what();
  }
  std::cout << found.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  return 0;
}

Finding judge_gpus(const GpuProbe& probe) {
  if (!probe.driver)
    return skip("no NVIDIA driver (/proc/driver/nvidia); the replicas of a worker are threads");
  if (!probe.failure.empty())
    return fail("the NVIDIA driver is loaded, but " + probe.failure,
                "run nvidia-smi; check the user-space libraries of the driver");
  if (probe.devices.empty()) {
    return warn("the NVIDIA driver is loaded, but this process sees no GPU",
                "request GPUs from the batch system (--gpus-per-node); check CUDA_VISIBLE_DEVICES");
  }
  const std::string observed = fmt::format(
      "{} (CUDA {}), NCCL {}, nvidia_peermem {}", fmt::join(probe.devices, ", "), cuda_version(probe.cuda),
      probe.nccl > 0 ? nccl_version(probe.nccl) : "absent", probe.peer_memory ? "loaded" : "not loaded");
  if (probe.nccl == 0 && probe.devices.size() > 1) {
    return warn(observed + ": a worker with several GPUs needs NCCL", "install NCCL (libnccl.so.2)");
  }
  return pass(observed);
}

Finding check_gpus(const Request&) {
  GpuProbe probe;
  probe.driver =
      std::filesystem::exists("/proc/driver/nvidia/version") || std::filesystem::exists("/dev/nvidiactl");
  if (!probe.driver) return judge_gpus(probe);
  probe.peer_memory = std::filesystem::exists("/sys/module/nvidia_peermem");
  const auto output =
      command_output({"/proc/self/exe", "doctor", "--probe", "gpu"}, kCudaTimeout, StderrMode::captured);
  const auto found = try_parse_json(output ? output->text : "");
  if (!output) {
    probe.failure = fmt::format("cuInit has not returned after {} s", kCudaTimeout.count());
  } else if (!found.is_object()) {
    probe.failure = fmt::format("the process that queried CUDA ended with exit code {}", output->exit_code);
  } else {
    probe.failure = found.value("failure", "");
    probe.cuda = found.value("cuda", 0);
    probe.nccl = found.value("nccl", 0);
    probe.devices = found.value("devices", std::vector<std::string>());
  }
  return judge_gpus(probe);
}

}  // namespace capstan::launch::doctor
