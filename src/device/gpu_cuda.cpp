// gpu_cuda.cpp -- real_gpu.hpp by CUDA.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <bit>

#include "device/cuda_call.hpp"
#include "device/real_gpu.hpp"

namespace capstan::device::real {
namespace {

cudaStream_t to_stream(void* handle) { return static_cast<cudaStream_t>(handle); }
cudaEvent_t to_event(void* handle) { return static_cast<cudaEvent_t>(handle); }

/// Null for want of memory. Throws Error(internal) for anything else.
std::byte* made_by(cudaError_t answer, void* made, const char* call) {
  if (answer == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return nullptr;
  }
  check(answer, call);
  return static_cast<std::byte*>(made);
}

}  // namespace

int count() noexcept {
  int found = 0;
  if (cudaGetDeviceCount(&found) != cudaSuccess) {
    (void)cudaGetLastError();
    return 0;
  }
  return found;
}

std::string why_none() {
  int found = 0;
  const cudaError_t answer = cudaGetDeviceCount(&found);
  (void)cudaGetLastError();
  if (answer == cudaErrorInsufficientDriver) {
    return fmt::format("no GPU: this machine has no driver, or one that is older than CUDA {}.{}",
                       CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  }
  if (answer != cudaSuccess) return std::string("no GPU: ") + cudaGetErrorString(answer);
  return found == 0 ? "no GPU: CUDA_VISIBLE_DEVICES or the machine has none" : "";
}

Info info(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  std::array<char, 32> bus{};
  check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device), "cudaDeviceGetPCIBusId");
  const On on(device);
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return {properties.name, bus.data(), properties.major, properties.minor, total, free};
}

int select(int device) {
  int before = 0;
  check(cudaGetDevice(&before), "cudaGetDevice");
  if (before != device) check(cudaSetDevice(device), "cudaSetDevice");
  return before;
}

void* create_stream(int device) {
  const On on(device);
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return made;
}
void destroy_stream(void* stream) noexcept { (void)cudaStreamDestroy(to_stream(stream)); }
void wait_for_stream(void* stream) {
  check(cudaStreamSynchronize(to_stream(stream)), "cudaStreamSynchronize");
}
void begin_after(void* stream, void* event) {
  check(cudaStreamWaitEvent(to_stream(stream), to_event(event), 0), "cudaStreamWaitEvent");
}

void* create_event(int device) {
  const On on(device);
  cudaEvent_t made = nullptr;
  check(cudaEventCreate(&made), "cudaEventCreate");
  return made;
}
void destroy_event(void* event) noexcept { (void)cudaEventDestroy(to_event(event)); }
void record(void* event, void* stream) {
  check(cudaEventRecord(to_event(event), to_stream(stream)), "cudaEventRecord");
}
void wait_for_event(void* event) { check(cudaEventSynchronize(to_event(event)), "cudaEventSynchronize"); }
bool done(void* event) {
  const cudaError_t answer = cudaEventQuery(to_event(event));
  if (answer == cudaErrorNotReady) {
    (void)cudaGetLastError();
    return false;
  }
  check(answer, "cudaEventQuery");
  return true;
}
double milliseconds(void* begin, void* end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, to_event(begin), to_event(end)), "cudaEventElapsedTime");
  return milliseconds;
}

std::byte* allocate(int device, std::size_t bytes) {
  const On on(device);
  void* made = nullptr;
  const cudaError_t answer = cudaMalloc(&made, bytes);
  return made_by(answer, made, "cudaMalloc");
}
void free(std::byte* bytes) noexcept { (void)cudaFree(bytes); }

std::byte* allocate_pinned(std::size_t bytes) {
  void* made = nullptr;
  const cudaError_t answer = cudaHostAlloc(&made, bytes, cudaHostAllocPortable);
  return made_by(answer, made, "cudaHostAlloc");
}
void free_pinned(std::byte* bytes) noexcept { (void)cudaFreeHost(bytes); }

void copy(void* stream, void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, to_stream(stream)), "cudaMemcpyAsync");
}
void fill_with_zeros(void* stream, void* memory, std::size_t bytes) {
  check(cudaMemsetAsync(memory, 0, bytes, to_stream(stream)), "cudaMemsetAsync");
}

std::array<std::byte, kExportBytes> export_memory(std::byte* memory) {
  static_assert(sizeof(cudaIpcMemHandle_t) == kExportBytes);
  cudaIpcMemHandle_t handle;
  check(cudaIpcGetMemHandle(&handle, memory), "cudaIpcGetMemHandle");
  return std::bit_cast<std::array<std::byte, kExportBytes>>(handle);
}
std::byte* import_memory(int device, const std::array<std::byte, kExportBytes>& exported) {
  const On on(device);
  void* mapped = nullptr;
  const cudaError_t answer = cudaIpcOpenMemHandle(&mapped, std::bit_cast<cudaIpcMemHandle_t>(exported),
                                                  cudaIpcMemLazyEnablePeerAccess);
  if (answer == cudaSuccess) return static_cast<std::byte*>(mapped);
  (void)cudaGetLastError();
  return nullptr;
}
void close_imported(std::byte* memory) noexcept { (void)cudaIpcCloseMemHandle(memory); }

}  // namespace capstan::device::real
