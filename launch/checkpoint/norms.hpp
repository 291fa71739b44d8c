// norms.hpp -- statistics of the elements of an array, in one pass.
#pragma once

#include <cstdint>
#include <string_view>

#include "capstan/dtype.hpp"

namespace capstan::launch::checkpoint {

/// NaN and infinities are counted, and excluded from the other fields.
struct Norms {
  std::uint64_t finite = 0;
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  double sum_of_squares = 0;
  double minimum = 0;  // meaningless if finite == 0
  double maximum = 0;

  double l2() const;
};

/// Adds the elements in `bytes`; REQUIRES: a multiple of the element size.
void add(Norms& norms, DType dtype, std::string_view bytes);

}  // namespace capstan::launch::checkpoint
