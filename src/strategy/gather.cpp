// gather.cpp -- checks that arrays can be joined, and computes the shape of the result.
#include "capstan/detail/gather.hpp"

#include <fmt/format.h>

#include <string>

#include "capstan/detail/reduce.hpp"

namespace capstan::detail {

Shape gathered_shape(std::span<const Shape* const> shapes, std::int64_t axis) {
  Shape result = *shapes[0];
  const auto rank = static_cast<std::int64_t>(result.size());
  for (std::size_t replica = 1; replica < shapes.size(); ++replica) {
    if (shapes[replica]->size() != result.size()) {
      throw differ("gather", "the rank", replica, std::to_string(shapes[replica]->size()),
                   std::to_string(rank));
    }
  }
  if (rank == 0) {
    throw Error(Code::invalid_argument,
                "gather: a scalar has no axis to gather along; give an array of rank 1 or more");
  }
  if (axis < -rank || axis >= rank) {
    throw Error(Code::invalid_argument,
                fmt::format("gather: `axis` = {} out of range for `value` with rank {}", axis, rank));
  }
  const auto along = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  for (std::size_t replica = 1; replica < shapes.size(); ++replica) {
    Shape expected = *shapes[0];
    expected[along] = (*shapes[replica])[along];
    if (*shapes[replica] != expected) {
      throw Error(Code::invalid_argument,
                  fmt::format("gather along axis {}: replica {} has an array of shape {}, replica 0 of shape "
                              "{}; expected shapes that differ along that axis only",
                              axis, replica, to_string(*shapes[replica]), to_string(*shapes[0])));
    }
    result[along] += (*shapes[replica])[along];
  }
  return result;
}

}  // namespace capstan::detail
