// row_sort_cub.cu -- row_sort.hpp on a GPU, by CUB's stable radix sort and its scan. A separate file, because
// it compiles slowly.
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>

#include "gpu/cuda_call.hpp"
#include "gpu/real_gpu.hpp"

namespace capstan::gpu::real {
namespace {

struct Maximum {
  __host__ __device__ std::uint32_t operator()(std::uint32_t a, std::uint32_t b) const {
    return a < b ? b : a;
  }
};

cudaStream_t stream_of(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle()); }

/// With null `scratch`, sort and scan only set `bytes` to the size that they need.
void sort(const Stream& stream, void* scratch, std::size_t& bytes, std::uint32_t count, int bits,
          const std::uint32_t* rows, std::uint32_t* sorted_rows, const std::uint32_t* order_in,
          std::uint32_t* order_out) {
  check(cub::DeviceRadixSort::SortPairs(scratch, bytes, rows, sorted_rows, order_in, order_out, count, 0,
                                        bits, stream_of(stream)),
        "cub::DeviceRadixSort::SortPairs");
}

void scan(const Stream& stream, void* scratch, std::size_t& bytes, std::uint32_t count,
          const std::uint32_t* in, std::uint32_t* out) {
  check(cub::DeviceScan::InclusiveScan(scratch, bytes, in, out, Maximum{}, count, stream_of(stream)),
        "cub::DeviceScan::InclusiveScan");
}

}  // namespace

std::size_t scratch_bytes(const Stream& stream, std::uint32_t count) {
  const DeviceGuard guard(stream);
  std::size_t for_sort = 0;
  std::size_t for_scan = 0;
  sort(stream, nullptr, for_sort, count, 32, nullptr, nullptr, nullptr, nullptr);
  scan(stream, nullptr, for_scan, count, nullptr, nullptr);
  return std::max<std::size_t>({for_sort, for_scan, 1});
}

void sort_rows(const Stream& stream, const Memory& scratch, std::uint32_t count, int bits,
               const std::uint32_t* rows, std::uint32_t* sorted_rows, const std::uint32_t* order_in,
               std::uint32_t* order_out) {
  const DeviceGuard guard(stream);
  std::size_t bytes = scratch.size();
  sort(stream, scratch.data(), bytes, count, bits, rows, sorted_rows, order_in, order_out);
}

void running_maximum(const Stream& stream, const Memory& scratch, std::uint32_t count,
                     const std::uint32_t* in, std::uint32_t* out) {
  const DeviceGuard guard(stream);
  std::size_t bytes = scratch.size();
  scan(stream, scratch.data(), bytes, count, in, out);
}

}  // namespace capstan::gpu::real
