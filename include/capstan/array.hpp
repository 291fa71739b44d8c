// array.hpp -- an array of any rank in row-major order: what reads return and what replicas combine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

/// How an element of type T is kept: as itself, but a bool as a byte of 0 or 1, since std::vector<bool> has
/// no bytes.
template <class T>
using Element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

/// Sizes along each axis; none for a scalar.
using Shape = std::vector<std::int64_t>;

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

template <class T>
struct Array {
  Shape shape;
  std::vector<Element<T>> values;  ///< as many as `shape` has elements

  /// A scalar 0.
  Array() : values(1) {}
  /// Throws Error(invalid_argument) when there are not as many values as the shape has elements.
  Array(Shape sizes, std::vector<Element<T>> elements)
      : shape(std::move(sizes)), values(std::move(elements)) {
    if (static_cast<std::int64_t>(values.size()) != elements_of(shape)) {
      throw Error(Code::invalid_argument, "an array of shape " + to_string(shape) + " has " +
                                              std::to_string(elements_of(shape)) + " elements; " +
                                              std::to_string(values.size()) + " were given");
    }
  }
  /// Zeros. Throws Error(invalid_argument) for a shape of 2^63 bytes or more.
  explicit Array(Shape sizes)
      : shape(std::move(sizes)), values(static_cast<std::size_t>(elements_of(shape, sizeof(Element<T>)))) {}

  static Array scalar(Element<T> value) { return Array({}, {value}); }
  static Array vector(std::vector<Element<T>> elements) {
    const auto size = static_cast<std::int64_t>(elements.size());
    return Array({size}, std::move(elements));
  }

  std::size_t rank() const noexcept { return shape.size(); }
  std::size_t size() const noexcept { return values.size(); }

  friend bool operator==(const Array&, const Array&) = default;
};

template <class T>
struct Serializer<Array<T>> {
  static void write(Writer& out, const Array<T>& array) {
    capstan::write(out, array.shape);
    capstan::write(out, array.values);
  }
  static Array<T> read(Reader& in) {
    auto shape = capstan::read<Shape>(in);
    return Array<T>(std::move(shape), capstan::read<std::vector<Element<T>>>(in));
  }
};

}  // namespace capstan
