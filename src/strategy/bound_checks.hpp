// bound_checks.hpp -- checks of the arguments of a call on a variable.
#pragma once

#include <cstddef>
#include <cstdint>

#include "strategy/context.hpp"

namespace capstan::strategy {

/// Returns the number of rows that `elements` elements make up; 0 if rows have no elements.
std::uint64_t rows_of(const BoundVariable& bound, std::size_t elements);

/// Throws Error(invalid_argument) unless `elements` make up `rows` rows.
void check_elements(const BoundVariable& bound, std::size_t elements, std::size_t rows, const char* call);

/// Throws Error(invalid_argument) if the variable's dtype has no gradient.
void check_push(const BoundVariable& bound);

}  // namespace capstan::strategy
