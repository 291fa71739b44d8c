// initialize.hpp -- initial values of variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "capstan/dtype.hpp"
#include "capstan/initializers.hpp"
#include "protocol/ps_messages.hpp"

namespace capstan::ps {

/// Writes the initial values of elements [first_element, first_element + elements) of a variable to `out`.
/// Throws Error(internal) if the initializer depends on the shape, not only on the index of an element.
void initialize(const Initializer& initializer, DType dtype, std::uint64_t first_element,
                std::uint64_t elements, void* out);
/// Writes the initial values of rows [first_row, first_row + rows) of a variable with any initializer.
void initialize(const Initializer& initializer, DType dtype, const std::vector<std::uint64_t>& shape,
                std::uint64_t first_row, std::uint64_t rows, void* out);

/// Returns true if the initial values of a shard must be computed in one call. A registered function computes
/// all rows of a shard, and the orthogonal initializer takes as long for a few rows as for all.
bool must_compute_all_rows(const protocol::CreateShard& shard) noexcept;
/// Writes the initial values of all rows of a shard: with its registered function if it has one, which
/// receives the shard's part of the variable, else with its initializer.
void initialize(const protocol::CreateShard& shard, std::byte* out);

}  // namespace capstan::ps
