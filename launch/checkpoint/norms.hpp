// norms.hpp -- what the elements of an array are like, in one pass.
#pragma once

#include <cstdint>
#include <string_view>

#include "capstan/dtype.hpp"

namespace capstan::launch::checkpoint {

/// NaN and infinities are counted and are no part of the rest.
struct Norms {
  std::uint64_t finite = 0;
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  double sum_of_squares = 0;
  double minimum = 0;  // of finite elements, if there are any
  double maximum = 0;

  double l2() const;
};

/// Adds whole elements of `dtype`, in the order of a file.
void add(Norms& norms, DType dtype, std::string_view bytes);

}  // namespace capstan::launch::checkpoint
