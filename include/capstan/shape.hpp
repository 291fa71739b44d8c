// shape.hpp -- the sizes of an array or a variable along each axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

/// Sizes along each axis; no axes for a scalar. A type of its own, so that a list of integers is never taken
/// for a shape: a variable's shape is written `Shape{rows, 64}`, its values `{1, 2, 3}`.
class Shape : public std::vector<std::int64_t> {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) : vector(sizes) {}
  template <std::input_iterator I>
  Shape(I first, I last) : vector(first, last) {}
  explicit Shape(std::vector<std::int64_t> sizes) : vector(std::move(sizes)) {}
};

/// "(3, 4)".
inline std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    text += (axis == 0 ? "" : ", ") + std::to_string(shape[axis]);
  }
  return text + ")";
}

/// Elements in a shape; 1 for a scalar. Throws Error(invalid_argument) for a negative size, and for more
/// elements than 2^63 - 1.
inline std::int64_t elements_of(const Shape& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) {
      throw Error(Code::invalid_argument, "shape " + to_string(shape) +
                                              " is not a shape: expected sizes of 0 "
                                              "or more whose product is below 2^63");
    }
  }
  return elements;
}

/// The same for an array whose elements have `element_bytes` each. Throws Error(invalid_argument) also where
/// the array has 2^63 bytes or more.
inline std::int64_t elements_of(const Shape& shape, std::size_t element_bytes) {
  const std::int64_t elements = elements_of(shape);
  if (elements > std::numeric_limits<std::int64_t>::max() / static_cast<std::int64_t>(element_bytes)) {
    throw Error(Code::invalid_argument, "an array of shape " + to_string(shape) + " has " +
                                            std::to_string(elements) + " elements of " +
                                            std::to_string(element_bytes) +
                                            " bytes, expected less than 2^63 bytes");
  }
  return elements;
}

template <>
struct Serializer<Shape> {
  static void write(Writer& out, const Shape& shape) {
    capstan::write<std::vector<std::int64_t>>(out, shape);
  }
  static Shape read(Reader& in) { return Shape(capstan::read<std::vector<std::int64_t>>(in)); }
};

}  // namespace capstan
