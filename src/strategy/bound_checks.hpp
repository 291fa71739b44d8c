// bound_checks.hpp -- what a call on a variable may be given.
#pragma once

#include <cstddef>
#include <cstdint>

#include "strategy/context.hpp"

namespace capstan::strategy {

/// In which `elements` elements lie; 0 where a row has none.
std::uint64_t rows_of(const BoundVariable& bound, std::size_t elements);

/// Throws Error(invalid_argument) unless `elements` make up `rows` rows.
void check_elements(const BoundVariable& bound, std::size_t elements, std::size_t rows, const char* call);

/// Throws Error(invalid_argument) for a variable that has no gradient.
void check_push(const BoundVariable& bound);

}  // namespace capstan::strategy
