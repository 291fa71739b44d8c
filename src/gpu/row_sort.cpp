// row_sort.cpp -- row_sort.hpp, implemented by real GPUs or stand-ins.
#include "gpu/row_sort.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "gpu/real_gpu.hpp"
#include "gpu/stand_in.hpp"

namespace capstan::gpu {

std::size_t scratch_bytes(const Stream& stream, std::uint32_t count) {
  return stream.stand_in() == nullptr ? real::scratch_bytes(stream, count) : 1;
}

void sort_rows(const Stream& stream, const Memory& scratch, std::uint32_t count, int bits,
               const std::uint32_t* rows, std::uint32_t* sorted_rows, const std::uint32_t* order_in,
               std::uint32_t* order_out) {
  if (stream.stand_in() == nullptr)
    return real::sort_rows(stream, scratch, count, bits, rows, sorted_rows, order_in, order_out);
  const DeviceGuard guard(stream);
  stream.stand_in()->launch([=] {
    std::vector<std::uint32_t> positions(count);
    std::iota(positions.begin(), positions.end(), 0U);
    const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
    std::stable_sort(positions.begin(), positions.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return (rows[a] & mask) < (rows[b] & mask); });
    for (std::uint32_t i = 0; i < count; ++i) {
      sorted_rows[i] = rows[positions[i]];
      order_out[i] = order_in[positions[i]];
    }
  });
}

void running_maximum(const Stream& stream, const Memory& scratch, std::uint32_t count,
                     const std::uint32_t* in, std::uint32_t* out) {
  if (stream.stand_in() == nullptr) return real::running_maximum(stream, scratch, count, in, out);
  const DeviceGuard guard(stream);
  stream.stand_in()->launch([=] {
    std::partial_sum(in, in + count, out, [](std::uint32_t a, std::uint32_t b) { return std::max(a, b); });
  });
}

}  // namespace capstan::gpu
