// int8_rows.hpp -- float32 rows as 8-bit integers: in messages of lookups, and in shards with int8 rows.
//
// A row is its minimum and its maximum, both float32, then one unsigned byte for each element. A step is
// (maximum - minimum) / 255. An element is minimum + byte * step, and the maximum for byte 255. Rounded to
// nearest, the largest error is half a step, and the rounding of the result to float32. The extremes are
// exact, and so is a row of equal elements. A row with an infinity or NaN is NaN in all elements.
//
// If the floats of a converted row are converted again, the result has the same floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gpu/rounding.hpp"

namespace capstan::protocol {

/// Returns the bytes of a converted row of `width` elements.
constexpr std::uint64_t int8_row_bytes(std::uint64_t width) noexcept { return 2 * sizeof(float) + width; }

/// Shorter rows would not be smaller than rows of float32.
inline constexpr std::uint64_t kMinInt8Elements = 3;
static_assert(int8_row_bytes(kMinInt8Elements) < kMinInt8Elements * sizeof(float));
static_assert(int8_row_bytes(kMinInt8Elements - 1) >= (kMinInt8Elements - 1) * sizeof(float));

// All use the widest vectors of the CPU, and accept memory of any alignment. REQUIRES: `from` has complete
// rows of at least one element; the memory does not overlap.

/// Rounds to nearest.
void to_int8_rows(std::span<const float> from, std::uint64_t width, std::byte* to);
/// Converts one row, and rounds as `rounding` says. Element i has the random bits of number
/// `first_element` + i; see gpu::random_bits. An element that is exact as a byte keeps its value.
void to_int8_row(std::span<const float> row, const gpu::Rounding& rounding, std::uint64_t first_element,
                 std::byte* to);
void from_int8_rows(std::span<const std::byte> from, std::uint64_t width, float* to);
/// Converts a part of one row: fills `to` with its elements from number `first_element` on.
void from_int8_row(std::span<const std::byte> row, std::uint64_t first_element, std::span<float> to);
/// Converts row rows[i] of the converted rows at `table` to row i of `to`. Prefetches.
void gather_int8_rows(const std::byte* table, std::uint64_t width, std::span<const std::uint32_t> rows,
                      float* to);

}  // namespace capstan::protocol
