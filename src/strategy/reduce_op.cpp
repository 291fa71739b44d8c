// reduce_op.cpp -- parses SUM and MEAN, and checks axes.
#include "capstan/detail/reduce.hpp"

#include <fmt/format.h>
#include <strings.h>

#include "capstan/error.hpp"

namespace capstan {

ReduceOp::ReduceOp(std::string_view word) {
  const std::string text(word);
  if (strcasecmp(text.c_str(), "MEAN") == 0) {
    mean_ = true;
  } else if (strcasecmp(text.c_str(), "SUM") != 0) {
    throw Error(Code::invalid_argument, fmt::format("reduce_op \"{}\" is neither SUM nor MEAN", text));
  }
}

std::string Axes::along() const {
  return axes_.empty() ? "" : fmt::format(" along axis {}", fmt::join(axes_, ", "));
}

std::vector<bool> Axes::named(std::size_t rank) const {
  std::vector<bool> is_reduced(rank);
  const auto axes = static_cast<std::int64_t>(rank);
  for (const std::int64_t given : axes_) {
    if (given < -axes || given >= axes) {
      throw Error(Code::invalid_argument,
                  fmt::format("`axis` = {} out of range for `value` with rank {}", given, rank));
    }
    const auto axis = static_cast<std::size_t>(given < 0 ? given + axes : given);
    if (is_reduced[axis]) {
      throw Error(Code::invalid_argument, fmt::format("`axis` = {} is named twice", given));
    }
    is_reduced[axis] = true;
  }
  return is_reduced;
}

}  // namespace capstan
