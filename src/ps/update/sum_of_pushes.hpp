// sum_of_pushes.hpp -- several workers' pushes to one shard as one.
#pragma once

#include <cstdint>
#include <span>

#include "capstan/dtype.hpp"
#include "ps/update/update_groups.hpp"

namespace capstan::ps {

/// The sum of pushes to a shard of `rows` rows of `width` elements, each element's terms in the order given,
/// divided by `divisor`. Sparse when all of them are: rows in ascending order, each once. 16-bit numbers are
/// summed in float and rounded once. REQUIRES: at least one push; what is pushed fits the shard.
HeldPush sum_of(std::span<const HeldPush* const> pushes, DType dtype, std::uint64_t width, std::uint64_t rows,
                int divisor);

}  // namespace capstan::ps
