// array.hpp -- an array of any rank in row-major order: what reads return and what replicas combine.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "capstan/shape.hpp"

namespace capstan {

/// How an element of type T is kept: as itself, but a bool as a byte of 0 or 1, since std::vector<bool> has
/// no bytes.
template <class T>
using Element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

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
  /// Zeros. Not of a list in braces, which would look like values: `Array<T>(Shape{2, 3})`. Throws
  /// Error(invalid_argument) for a shape of 2^63 bytes or more.
  template <std::same_as<Shape> S>
  explicit Array(S sizes)
      : shape(std::move(sizes)), values(static_cast<std::size_t>(elements_of(shape, sizeof(Element<T>)))) {}

  static Array scalar(Element<T> value) { return Array({}, {value}); }
  static Array vector(std::vector<Element<T>> elements) {
    const auto size = static_cast<std::int64_t>(elements.size());
    return Array({size}, std::move(elements));
  }
  /// `Array<float>::matrix({{1, 2}, {3, 4}})`. Throws Error(invalid_argument) for rows of different lengths.
  static Array matrix(std::initializer_list<std::initializer_list<T>> rows) {
    const std::size_t columns = rows.size() == 0 ? 0 : rows.begin()->size();
    std::vector<Element<T>> elements;
    elements.reserve(rows.size() * columns);
    for (const auto& row : rows) {
      if (row.size() != columns) {
        throw Error(Code::invalid_argument, "row " + std::to_string(&row - rows.begin()) +
                                                " of a matrix has " + std::to_string(row.size()) +
                                                " values, expected " + std::to_string(columns) +
                                                " as in row 0");
      }
      elements.insert(elements.end(), row.begin(), row.end());
    }
    return Array(Shape{static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)},
                 std::move(elements));
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
