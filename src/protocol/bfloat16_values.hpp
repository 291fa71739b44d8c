// bfloat16_values.hpp -- converts float32 values for messages of variables with bfloat16 communication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "capstan/dtype.hpp"

namespace capstan::protocol {

// All use the widest vectors of the CPU, and accept memory of any alignment.

/// Rounds to nearest, ties to even, as bfloat16's constructor.
void to_bfloat16(std::span<const float> from, bfloat16* to);
/// Rounds each value to one of the two adjacent numbers at random, so that its expected value is the value.
/// The result depends on `seed` and the position of the value only. Values that are not finite, or that no
/// larger finite bfloat16 exceeds, are rounded to nearest. REQUIRES: at most 2^32 values.
void to_bfloat16_stochastically(std::span<const float> from, bfloat16* to, std::uint64_t seed);
void from_bfloat16(std::span<const bfloat16> from, float* to);

}  // namespace capstan::protocol
