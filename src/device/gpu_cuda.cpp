// gpu_cuda.cpp -- gpu.hpp by CUDA.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <array>

#include "device/cuda_call.hpp"
#include "device/gpu.hpp"

namespace capstan::device {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;

cudaStream_t stream_of(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle()); }

Error no_room(int device, std::size_t bytes) {
  const Info there = info(device);
  const auto gib = [](std::uint64_t count) { return static_cast<double>(count) / kGib; };
  return Error(
      Code::resource_exhausted,
      fmt::format("GPU {} ({}) has no room for {:.2f} GiB ({:.2f} of {:.2f} GiB are free): use fewer rows, "
                  "or 16-bit values, or leave the table in the memory of a host",
                  device, there.name, gib(bytes), gib(there.free_bytes), gib(there.bytes)));
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
  if (device < 0 || device >= count()) {
    throw Error(Code::out_of_range,
                fmt::format("there is no GPU {}: this process may use {}", device, count()));
  }
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

Stream::Stream(int device) : device_(device) {
  const On on(device);
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  handle_.reset(made);
}

void Stream::Destroy::operator()(void* handle) const noexcept {
  (void)cudaStreamDestroy(static_cast<cudaStream_t>(handle));
}

void Stream::wait() const { check(cudaStreamSynchronize(stream_of(*this)), "cudaStreamSynchronize"); }

Event::Event() {
  cudaEvent_t made = nullptr;
  check(cudaEventCreate(&made), "cudaEventCreate");
  handle_.reset(made);
}

void Event::Destroy::operator()(void* handle) const noexcept {
  (void)cudaEventDestroy(static_cast<cudaEvent_t>(handle));
}

void Event::record(const Stream& stream) {
  check(cudaEventRecord(static_cast<cudaEvent_t>(handle_.get()), stream_of(stream)), "cudaEventRecord");
}

double Event::milliseconds_since(const Event& earlier) const {
  auto* const end = static_cast<cudaEvent_t>(handle_.get());
  check(cudaEventSynchronize(end), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, static_cast<cudaEvent_t>(earlier.handle_.get()), end),
        "cudaEventElapsedTime");
  return milliseconds;
}

Memory::Memory(int device, std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  const On on(device);
  void* made = nullptr;
  const cudaError_t answer = cudaMalloc(&made, bytes);
  if (answer == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    throw no_room(device, bytes);
  }
  check(answer, "cudaMalloc");
  bytes_.reset(static_cast<std::byte*>(made));
}

void Memory::Free::operator()(std::byte* bytes) const noexcept { (void)cudaFree(bytes); }

void copy(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)), "cudaMemcpyAsync");
}

void fill_with_zeros(const Stream& stream, void* memory, std::size_t bytes) {
  if (bytes == 0) return;
  check(cudaMemsetAsync(memory, 0, bytes, stream_of(stream)), "cudaMemsetAsync");
}

}  // namespace capstan::device
