// gpu_cuda.cpp -- real_gpu.hpp, implemented by CUDA.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <bit>

#include "gpu/cuda_call.hpp"
#include "gpu/real_gpu.hpp"

namespace capstan::gpu::real {
namespace {

cudaStream_t to_stream(void* handle) { return static_cast<cudaStream_t>(handle); }
cudaEvent_t to_event(void* handle) { return static_cast<cudaEvent_t>(handle); }

/// Returns null if memory is exhausted. Throws Error(internal) for any other failure.
std::byte* made_by(cudaError_t answer, void* made, const char* call) {
  if (answer == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return nullptr;
  }
  check(answer, call);
  return static_cast<std::byte*>(made);
}

std::atomic<bool> initialized{false};

cudaError_t count_devices(int& found) noexcept {
  const cudaError_t answer = cudaGetDeviceCount(&found);
  if (answer == cudaSuccess) {
    initialized = true;
  } else {
    (void)cudaGetLastError();
  }
  return answer;
}

/// Devices that this process has selected, as a bit mask; they have contexts. No host has more than 64 GPUs.
constexpr int kMaxDevices = 64;
std::atomic<std::uint64_t> selected{0};

bool was_selected(int device) noexcept { return device < kMaxDevices && (selected >> device & 1) != 0; }

using GetContextState = CUresult(CUDAAPI*)(CUdevice, unsigned int*, int*);

/// Returns null if the driver lacks the function.
GetContextState find_get_context_state() noexcept {
  constexpr const char* kName = "cuDevicePrimaryCtxGetState";
  void* found = nullptr;
#if CUDART_VERSION >= 12050
  const cudaError_t answer = cudaGetDriverEntryPointByVersion(kName, &found, 7000, cudaEnableDefault);
#else
  const cudaError_t answer = cudaGetDriverEntryPoint(kName, &found, cudaEnableDefault);
#endif
  if (answer == cudaSuccess) return reinterpret_cast<GetContextState>(found);
  (void)cudaGetLastError();
  return nullptr;
}

/// Returns true if the device already has a context, so that selecting it creates none; true if unknown.
bool has_context(int device) noexcept {
  static const GetContextState get_state = find_get_context_state();
  if (get_state == nullptr) return true;
  unsigned int flags = 0;
  int active = 0;
  return get_state(device, &flags, &active) == CUDA_SUCCESS &&
         active != 0;  // a CUdevice is the device's index
}

/// Pinned memory is accessible to all GPUs, but its allocation needs a context. Prefers an existing one.
int device_for_pinned() {
  int now = 0;
  check(cudaGetDevice(&now), "cudaGetDevice");
  const std::uint64_t known = selected;
  return known == 0 || was_selected(now) ? now : std::countr_zero(known);
}

/// Runs `call` and discards its error, for destructors; clears it, so that the next call does not report it.
template <class Call>
void ignore_errors(int device, const Call& call) noexcept {
  try {
    const DeviceGuard guard(device);
    if (call() != cudaSuccess) (void)cudaGetLastError();
  } catch (const std::exception&) {  // the device has failed, and its resources with it
  }
}

}  // namespace

int count() noexcept {
  int found = 0;
  return count_devices(found) == cudaSuccess ? found : 0;
}

bool was_used() noexcept { return initialized; }

std::string why_none() {
  int found = 0;
  const cudaError_t answer = count_devices(found);
  if (answer == cudaErrorInsufficientDriver) {
    return fmt::format("no GPU: the driver is missing or older than CUDA {}.{}; install or update it",
                       CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
  }
  if (answer != cudaSuccess) return std::string("no GPU: ") + cudaGetErrorString(answer);
  return found == 0 ? "no GPU: this host has none, or CUDA_VISIBLE_DEVICES hides them" : "";
}

Info info(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  std::array<char, 32> bus{};
  check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device), "cudaDeviceGetPCIBusId");
  const DeviceGuard guard(device);
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return {properties.name, bus.data(), properties.major, properties.minor, total, free};
}

int select(int device) {
  int before = 0;
  check(cudaGetDevice(&before), "cudaGetDevice");
  if (before != device) {
    const bool had_context = has_context(before);
    check(cudaSetDevice(device), "cudaSetDevice");
    if (!had_context) before = device;
  }
  if (device < kMaxDevices) selected |= std::uint64_t{1} << device;
  return before;
}

void restore(int device) noexcept {
  int now = 0;
  const bool is_known = cudaGetDevice(&now) == cudaSuccess;
  if (is_known && (now == device || cudaSetDevice(device) == cudaSuccess)) return;
  (void)cudaGetLastError();
}

void* create_stream(int device) {
  const DeviceGuard guard(device);
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return made;
}
void destroy_stream(int device, void* stream) noexcept {
  ignore_errors(device, [&] { return cudaStreamDestroy(to_stream(stream)); });
}
void wait_for_stream(void* stream) {
  check(cudaStreamSynchronize(to_stream(stream)), "cudaStreamSynchronize");
}
void begin_after(void* stream, void* event) {
  check(cudaStreamWaitEvent(to_stream(stream), to_event(event), 0), "cudaStreamWaitEvent");
}

void* create_event(int device, Timing timing) {
  const DeviceGuard guard(device);
  cudaEvent_t made = nullptr;
  const unsigned flags = timing == Timing::yes ? cudaEventDefault : cudaEventDisableTiming;
  check(cudaEventCreateWithFlags(&made, flags), "cudaEventCreateWithFlags");
  return made;
}
void destroy_event(int device, void* event) noexcept {
  ignore_errors(device, [&] { return cudaEventDestroy(to_event(event)); });
}
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
  const DeviceGuard guard(device);
  void* made = nullptr;
  const cudaError_t answer = cudaMalloc(&made, bytes);
  return made_by(answer, made, "cudaMalloc");
}
void free(int device, std::byte* bytes) noexcept {
  ignore_errors(device, [&] {
    if (cudaDeviceSynchronize() != cudaSuccess) (void)cudaGetLastError();  // a wait for the stream reports it
    return cudaFree(bytes);
  });
}

std::byte* allocate_pinned(std::size_t bytes) {
  const DeviceGuard guard(device_for_pinned());
  void* made = nullptr;
  const cudaError_t answer = cudaHostAlloc(&made, bytes, cudaHostAllocPortable);
  return made_by(answer, made, "cudaHostAlloc");
}
void free_pinned(std::byte* bytes) noexcept {
  int last = 0;
  for (int device = 0; device < kMaxDevices; ++device) {
    if (!was_selected(device)) continue;
    last = device;
    ignore_errors(device, [] { return cudaDeviceSynchronize(); });
  }
  ignore_errors(last, [&] { return cudaFreeHost(bytes); });
}

void copy(void* stream, void* to, const void* from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, to_stream(stream)), "cudaMemcpyAsync");
}
void fill_with_zeros(void* stream, void* memory, std::size_t bytes) {
  check(cudaMemsetAsync(memory, 0, bytes, to_stream(stream)), "cudaMemsetAsync");
}

std::optional<std::array<std::byte, kExportBytes>> export_memory(int device, std::byte* memory) noexcept {
  static_assert(sizeof(cudaIpcMemHandle_t) == kExportBytes);
  cudaIpcMemHandle_t handle;
  cudaError_t answer = cudaErrorUnknown;
  ignore_errors(device, [&] { return answer = cudaIpcGetMemHandle(&handle, memory); });
  if (answer != cudaSuccess) return std::nullopt;
  return std::bit_cast<std::array<std::byte, kExportBytes>>(handle);
}
std::byte* import_memory(int device, const std::array<std::byte, kExportBytes>& exported) {
  const DeviceGuard guard(device);
  void* mapped = nullptr;
  const cudaError_t answer = cudaIpcOpenMemHandle(&mapped, std::bit_cast<cudaIpcMemHandle_t>(exported),
                                                  cudaIpcMemLazyEnablePeerAccess);
  if (answer == cudaSuccess) return static_cast<std::byte*>(mapped);
  (void)cudaGetLastError();
  return nullptr;
}
void close_imported(int device, std::byte* memory) noexcept {
  ignore_errors(device, [&] { return cudaIpcCloseMemHandle(memory); });
}

}  // namespace capstan::gpu::real
