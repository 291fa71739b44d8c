// checks.hpp -- validates row numbers before anything is sent.
#pragma once

#include <cstdint>
#include <span>

#include "protocol/descriptor.hpp"

namespace capstan::client {

/// Throws Error(out_of_range) with the id and its position if an id is not a row of the variable, or
/// Error(invalid_argument) if there are too many ids for one call.
void check_ids(const protocol::VariableDescriptor& variable, std::span<const std::int64_t> ids);

/// Throws Error(out_of_range) unless the variable has rows [first_row, first_row + rows).
void check_rows(const protocol::VariableDescriptor& variable, std::uint64_t first_row, std::uint64_t rows);

}  // namespace capstan::client
