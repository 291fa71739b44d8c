// gpu_cuda.cpp -- real_gpu.hpp by CUDA.
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

/// Null for want of memory. Throws Error(internal) for anything else.
std::byte* made_by(cudaError_t answer, void* made, const char* call) {
  if (answer == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return nullptr;
  }
  check(answer, call);
  return static_cast<std::byte*>(made);
}

std::atomic<bool> initialised{false};

cudaError_t count_devices(int& found) noexcept {
  const cudaError_t answer = cudaGetDeviceCount(&found);
  if (answer == cudaSuccess) {
    initialised = true;
  } else {
    (void)cudaGetLastError();
  }
  return answer;
}

/// Devices that this process has selected, bit by bit, and which have contexts therefore. No host has so
/// many.
constexpr int kMostDevices = 64;
std::atomic<std::uint64_t> selected{0};

bool was_selected(int device) noexcept { return device < kMostDevices && (selected >> device & 1) != 0; }

using GetContextState = CUresult(CUDAAPI*)(CUdevice, unsigned int*, int*);

/// Null where this driver has none.
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

/// Whether selecting the device makes no context. True where the driver does not say.
bool has_context(int device) noexcept {
  static const GetContextState get_state = find_get_context_state();
  if (get_state == nullptr) return true;
  unsigned int flags = 0;
  int active = 0;
  return get_state(device, &flags, &active) == CUDA_SUCCESS && active != 0;  // a CUdevice is its number
}

/// Pinned memory is of all GPUs, but making it takes a context: this thread's, or one that there is.
int device_for_pinned() {
  int now = 0;
  check(cudaGetDevice(&now), "cudaGetDevice");
  const std::uint64_t known = selected;
  return known == 0 || was_selected(now) ? now : std::countr_zero(known);
}

/// For what ends something: there is nobody to tell, and the next call is not to tell it instead.
template <class Call>
void quietly(int device, const Call& call) noexcept {
  try {
    const On on(device);
    if (call() != cudaSuccess) (void)cudaGetLastError();
  } catch (const std::exception&) {  // the device is lost, with what it had
  }
}

}  // namespace

int count() noexcept {
  int found = 0;
  return count_devices(found) == cudaSuccess ? found : 0;
}

bool was_used() noexcept { return initialised; }

std::string why_none() {
  int found = 0;
  const cudaError_t answer = count_devices(found);
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
  if (before != device) {
    const bool returns = has_context(before);
    check(cudaSetDevice(device), "cudaSetDevice");
    if (!returns) before = device;
  }
  if (device < kMostDevices) selected |= std::uint64_t{1} << device;
  return before;
}

void restore(int device) noexcept {
  int now = 0;
  const bool is_known = cudaGetDevice(&now) == cudaSuccess;
  if (is_known && (now == device || cudaSetDevice(device) == cudaSuccess)) return;
  (void)cudaGetLastError();
}

void* create_stream(int device) {
  const On on(device);
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return made;
}
void destroy_stream(int device, void* stream) noexcept {
  quietly(device, [&] { return cudaStreamDestroy(to_stream(stream)); });
}
void wait_for_stream(void* stream) {
  check(cudaStreamSynchronize(to_stream(stream)), "cudaStreamSynchronize");
}
void begin_after(void* stream, void* event) {
  check(cudaStreamWaitEvent(to_stream(stream), to_event(event), 0), "cudaStreamWaitEvent");
}

void* create_event(int device, Timing timing) {
  const On on(device);
  cudaEvent_t made = nullptr;
  const unsigned flags = timing == Timing::yes ? cudaEventDefault : cudaEventDisableTiming;
  check(cudaEventCreateWithFlags(&made, flags), "cudaEventCreateWithFlags");
  return made;
}
void destroy_event(int device, void* event) noexcept {
  quietly(device, [&] { return cudaEventDestroy(to_event(event)); });
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
  const On on(device);
  void* made = nullptr;
  const cudaError_t answer = cudaMalloc(&made, bytes);
  return made_by(answer, made, "cudaMalloc");
}
void free(int device, std::byte* bytes) noexcept {
  quietly(device, [&] {
    if (cudaDeviceSynchronize() != cudaSuccess) (void)cudaGetLastError();  // told to who waits for the stream
    return cudaFree(bytes);
  });
}

std::byte* allocate_pinned(std::size_t bytes) {
  const On on(device_for_pinned());
  void* made = nullptr;
  const cudaError_t answer = cudaHostAlloc(&made, bytes, cudaHostAllocPortable);
  return made_by(answer, made, "cudaHostAlloc");
}
void free_pinned(std::byte* bytes) noexcept {
  int last = 0;
  for (int device = 0; device < kMostDevices; ++device) {
    if (!was_selected(device)) continue;
    last = device;
    quietly(device, [] { return cudaDeviceSynchronize(); });
  }
  quietly(last, [&] { return cudaFreeHost(bytes); });
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
  quietly(device, [&] { return answer = cudaIpcGetMemHandle(&handle, memory); });
  if (answer != cudaSuccess) return std::nullopt;
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
void close_imported(int device, std::byte* memory) noexcept {
  quietly(device, [&] { return cudaIpcCloseMemHandle(memory); });
}

}  // namespace capstan::gpu::real
