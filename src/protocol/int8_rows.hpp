// int8_rows.hpp -- converts float32 rows to 8-bit integers for lookups of variables with int8_lookups.
//
// A row in a message is its minimum and a step, both float32, then one unsigned byte for each element. An
// element is minimum + byte * step, and the step is (maximum - minimum) / 255. Bytes are rounded to nearest,
// so that the largest error is half a step, and the rounding of the result to float32. A row of equal
// elements is exact. A row with an infinity or NaN is received as NaN in all elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace capstan::protocol {

/// Returns the bytes of a row of `width` elements in a message.
constexpr std::uint64_t int8_row_bytes(std::uint64_t width) noexcept { return 2 * sizeof(float) + width; }

// Both use the widest vectors of the CPU, and accept memory of any alignment. REQUIRES: `from` has complete
// rows of at least one element; the memory does not overlap.

void to_int8_rows(std::span<const float> from, std::uint64_t width, std::byte* to);
void from_int8_rows(std::span<const std::byte> from, std::uint64_t width, float* to);

}  // namespace capstan::protocol
