// bound_checks.cpp -- checks of sizes and dtypes, and their errors.
#include "strategy/bound_checks.hpp"

#include <fmt/format.h>

#include "capstan/error.hpp"

namespace capstan::strategy {

std::uint64_t rows_of(const BoundVariable& bound, std::size_t elements) {
  const std::uint64_t width = bound.descriptor.width();
  return width == 0 ? 0 : elements / width;
}

void check_elements(const BoundVariable& bound, std::size_t elements, std::size_t rows, const char* call) {
  const std::uint64_t width = bound.descriptor.width();
  if (elements == rows * width) return;
  throw Error(Code::invalid_argument,
              fmt::format("{} of variable \"{}\": {} rows of {} elements make {} elements, {} were given",
                          call, bound.descriptor.name, rows, width, rows * width, elements));
}

void check_push(const BoundVariable& bound) {
  if (bound.descriptor.dtype != DType::boolean) return;
  throw Error(
      Code::invalid_argument,
      fmt::format("push to variable \"{}\": a bool has no gradient; assign it", bound.descriptor.name));
}

}  // namespace capstan::strategy
