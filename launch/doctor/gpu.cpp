// gpu.cpp -- libcuda and libnccl by dlopen, in a child: cuInit may hang with a sick GPU.
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

constexpr std::chrono::seconds kCudaAnswersWithin{20};

/// A function of a library that this program is not linked with; throws Error(not_found).
template <class Function>
Function* symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (found == nullptr) throw Error(Code::not_found, std::string("dlsym: ") + dlerror());
  return reinterpret_cast<Function*>(found);
}

void require(int status, const char* call) {
  if (status != 0) throw Error(Code::internal, fmt::format("{}: CUDA error {}", call, status));
}

/// The prototypes are those of cuda.h, where CUresult and CUdevice are of the size of int.
void ask_cuda(nlohmann::json& found) {
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

void ask_nccl(nlohmann::json& found) {
  void* nccl = dlopen("libnccl.so.2", RTLD_NOW);
  int version = 0;
  if (nccl != nullptr && symbol<int(int*)>(nccl, "ncclGetVersion")(&version) == 0) found["nccl"] = version;
}

std::string cuda_version(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }
std::string nccl_version(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace

int look_at_gpus() {
  nlohmann::json found = nlohmann::json::object();
  try {
    ask_cuda(found);
    ask_nccl(found);
  } catch (const std::exception& error) {
    found["failure"] = error.what();
  }
  std::cout << found.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  return 0;
}

Finding judge_gpus(const GpuLook& look) {
  if (!look.driver) return skip("no NVIDIA driver (/proc/driver/nvidia); replicas of a worker are threads");
  if (!look.failure.empty())
    return fail("the NVIDIA driver is loaded, and " + look.failure,
                "nvidia-smi; the driver's user-space libraries");
  if (look.devices.empty()) {
    return warn("the NVIDIA driver is loaded, and shows this process no GPU",
                "ask the batch system for GPUs (--gpus-per-node); CUDA_VISIBLE_DEVICES");
  }
  const std::string seen = fmt::format(
      "{} (CUDA {}), NCCL {}, nvidia_peermem {}", fmt::join(look.devices, ", "), cuda_version(look.cuda),
      look.nccl > 0 ? nccl_version(look.nccl) : "absent", look.peer_memory ? "loaded" : "not loaded");
  if (look.nccl == 0 && look.devices.size() > 1) {
    return warn(seen + ": several GPUs of a worker are combined by NCCL", "install NCCL (libnccl.so.2)");
  }
  return pass(seen);
}

Finding check_gpus(const Request&) {
  GpuLook look;
  look.driver =
      std::filesystem::exists("/proc/driver/nvidia/version") || std::filesystem::exists("/dev/nvidiactl");
  if (!look.driver) return judge_gpus(look);
  look.peer_memory = std::filesystem::exists("/sys/module/nvidia_peermem");
  const auto end =
      command_output({"/proc/self/exe", "doctor", "--look", "gpu"}, kCudaAnswersWithin, Errors::kept);
  const auto found = try_parse_json(end ? end->text : "");
  if (!end) {
    look.failure = fmt::format("cuInit has not returned after {} s", kCudaAnswersWithin.count());
  } else if (!found.is_object()) {
    look.failure = fmt::format("the process that asked CUDA ended with exit code {}", end->exit_code);
  } else {
    look.failure = found.value("failure", "");
    look.cuda = found.value("cuda", 0);
    look.nccl = found.value("nccl", 0);
    look.devices = found.value("devices", std::vector<std::string>());
  }
  return judge_gpus(look);
}

}  // namespace capstan::launch::doctor
