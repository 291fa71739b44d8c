// row_sort.hpp -- sorts row numbers together with a second array, and computes running maxima.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/gpu.hpp"

namespace capstan::gpu {

/// Scratch memory that the two functions below need for `count` rows, in bytes.
std::size_t scratch_bytes(const Stream& stream, std::uint32_t count);

/// Stably sorts the pairs (rows[i], order_in[i]) by the low `bits` bits of rows[i], into `sorted_rows` and
/// `order_out`.
void sort_rows(const Stream& stream, const Memory& scratch, std::uint32_t count, int bits,
               const std::uint32_t* rows, std::uint32_t* sorted_rows, const std::uint32_t* order_in,
               std::uint32_t* order_out);
/// out[i] = max(in[0], ..., in[i]).
void running_maximum(const Stream& stream, const Memory& scratch, std::uint32_t count,
                     const std::uint32_t* in, std::uint32_t* out);

}  // namespace capstan::gpu
