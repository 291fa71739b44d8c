// row_sort.hpp -- rows by their number, and running maxima.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/gpu.hpp"

namespace capstan::gpu {

/// Bytes beside their arguments that the two calls below need for `count` rows.
std::size_t scratch_bytes(const Stream& stream, std::uint32_t count);

/// Sorts (rows[i], order_in[i]) by row, below `bits` bits; of equal rows the first stays first.
void sort_rows(const Stream& stream, const Memory& scratch, std::uint32_t count, int bits,
               const std::uint32_t* rows, std::uint32_t* sorted_rows, const std::uint32_t* order_in,
               std::uint32_t* order);
/// out[i] = max(in[0], ..., in[i])
void running_maximum(const Stream& stream, const Memory& scratch, std::uint32_t count,
                     const std::uint32_t* in, std::uint32_t* out);

}  // namespace capstan::gpu
