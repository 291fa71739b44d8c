// sum_of_pushes.hpp -- combines the pushes of several workers to one shard.
#pragma once

#include <cstdint>
#include <span>

#include "capstan/dtype.hpp"
#include "ps/update/update_groups.hpp"

namespace capstan::ps {

/// Returns the sum of pushes to a shard of `rows` rows of `width` elements, divided by `divisor`. The terms
/// of an element are added in the order given. The sum is dense if it contains every row, else sparse with
/// unique rows in ascending order. 16-bit floats are summed in float and rounded once. REQUIRES: at least one
/// push, and every push fits the shard.
HeldPush sum_of(std::span<const HeldPush* const> pushes, DType dtype, std::uint64_t width, std::uint64_t rows,
                int divisor);

}  // namespace capstan::ps
