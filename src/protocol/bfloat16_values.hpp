// bfloat16_values.hpp -- converts float32 values for messages of variables with bfloat16 communication.
#pragma once

#include <cstddef>
#include <span>

#include "capstan/dtype.hpp"

namespace capstan::protocol {

// Both use the widest vectors of the CPU, and accept memory of any alignment. Rounds to nearest, ties to
// even, as bfloat16's constructor.

void to_bfloat16(std::span<const float> from, bfloat16* to);
void from_bfloat16(std::span<const bfloat16> from, float* to);

}  // namespace capstan::protocol
