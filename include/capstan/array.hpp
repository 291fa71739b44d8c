// array.hpp -- Array, a row-major array of any rank, which reads return and reductions combine: shapes,
// element-wise arithmetic and comparisons, and clipping by norm.
//
// An operand is an Array, a number (used with every element), or a variable, which is read completely: `x *
// w` for a variable w is `x * w.read()`, for any number of shards. A comparison returns a mask.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/dtype.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"

namespace capstan {

/// Sizes along each axis; empty for a scalar. A distinct type, so that a braced list of integers is never
/// taken for a shape: a variable's shape is written `Shape{rows, 64}`, its values `{1, 2, 3}`.
class Shape : public std::vector<std::int64_t> {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes) : vector(sizes) {}
  template <std::input_iterator I>
  Shape(I first, I last) : vector(first, last) {}
  explicit Shape(std::vector<std::int64_t> sizes) : vector(std::move(sizes)) {}
};

/// Returns the shape as text: "(3, 4)".
inline std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    text += (axis == 0 ? "" : ", ") + std::to_string(shape[axis]);
  }
  return text + ")";
}

/// Number of elements of a shape; 1 for a scalar. Throws Error(invalid_argument) for a negative size or more
/// than 2^63 - 1 elements.
inline std::int64_t elements_of(const Shape& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements)) {
      throw Error(Code::invalid_argument, "invalid shape " + to_string(shape) +
                                              ": expected sizes of 0 "
                                              "or more whose product is below 2^63");
    }
  }
  return elements;
}

/// As above, for elements of `element_bytes` bytes. Throws Error(invalid_argument) also for arrays of 2^63
/// bytes or more.
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

/// Storage type of an element of type T: T, but a byte of 0 or 1 for bool, since std::vector<bool> does not
/// store bytes.
template <class T>
using Element = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

template <class T>
struct Array {
  Shape shape;
  std::vector<Element<T>> values;  ///< as many as the shape has elements

  /// A scalar with value 0.
  Array() : values(1) {}
  /// Throws Error(invalid_argument) unless there are as many values as the shape has elements.
  Array(Shape sizes, std::vector<Element<T>> elements)
      : shape(std::move(sizes)), values(std::move(elements)) {
    if (static_cast<std::int64_t>(values.size()) != elements_of(shape)) {
      throw Error(Code::invalid_argument, "array of shape " + to_string(shape) + ": found " +
                                              std::to_string(values.size()) + " values, expected " +
                                              std::to_string(elements_of(shape)));
    }
  }
  /// Zeros: `Array<T>(Shape{2, 3})`. A braced list is not accepted, because it would look like values. Throws
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
        throw Error(Code::invalid_argument, "matrix: row " + std::to_string(&row - rows.begin()) + " has " +
                                                std::to_string(row.size()) + " values, expected " +
                                                std::to_string(columns) + " as in row 0");
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

/// Applies f to the elements of two arrays of equal shape; a scalar is used with every element of the other
/// array. Throws Error(invalid_argument) for other shapes.
template <class Result, class T, class F>
Array<Result> elementwise(const Array<T>& a, const Array<T>& b, F f) {
  const bool a_is_scalar = a.rank() == 0;
  const bool b_is_scalar = b.rank() == 0;
  if (a.shape != b.shape && !a_is_scalar && !b_is_scalar) {
    throw Error(Code::invalid_argument, "element-wise operation: found shapes " + to_string(a.shape) +
                                            " and " + to_string(b.shape) + ", expected equal shapes");
  }
  Array<Result> out(a_is_scalar ? b.shape : a.shape);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out.values[i] =
        static_cast<Element<Result>>(f(a.values[a_is_scalar ? 0 : i], b.values[b_is_scalar ? 0 : i]));
  }
  return out;
}

template <class T>
concept Number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

/// The element type of an operand: an Array, or a type whose read() returns one, such as Variable.
template <class A>
struct OperandElement {};
template <class T>
struct OperandElement<Array<T>> {
  using type = T;
};
template <class A>
requires requires(const A& a) {
  { a.read() } -> std::same_as<Array<typename A::value_type>>;
}
struct OperandElement<A> {
  using type = typename A::value_type;
};
template <class A>
concept ArrayOperand = requires {
  typename OperandElement<A>::type;
};

/// A number that can be combined with elements of type T. Integers cannot be combined with a floating-point
/// number.
template <class N, class T>
concept NumberOperand =
    !ArrayOperand<N> && std::convertible_to<N, T> && !(std::floating_point<N> && std::integral<T>);

/// Two arrays of one element type, or an array and a number.
template <class A, class B>
concept ArrayOperands = (ArrayOperand<A> && ArrayOperand<B> &&
                         std::same_as<typename OperandElement<A>::type, typename OperandElement<B>::type>) ||
                        (ArrayOperand<A> && NumberOperand<B, typename OperandElement<A>::type>) ||
                        (ArrayOperand<B> && NumberOperand<A, typename OperandElement<B>::type>);

template <class A, class B>
using ElementOfOperands =
    typename std::conditional_t<ArrayOperand<A>, OperandElement<A>, OperandElement<B>>::type;
template <class A, class B>
concept NumericOperands = ArrayOperands<A, B> && Number<ElementOfOperands<A, B>>;
template <class A, class B>
concept FloatingOperands = ArrayOperands<A, B> && std::floating_point<ElementOfOperands<A, B>>;

namespace detail {

template <class T, class A>
decltype(auto) as_array(const A& operand) {
  if constexpr (std::same_as<A, Array<T>>) {
    return (operand);  // parenthesized: returns a reference
  } else if constexpr (ArrayOperand<A>) {
    return operand.read();
  } else {
    return Array<T>::scalar(static_cast<T>(operand));
  }
}

template <class Result, class A, class B, class F>
Array<Result> of_operands(const A& a, const B& b, F f) {
  using T = ElementOfOperands<A, B>;
  return elementwise<Result>(as_array<T>(a), as_array<T>(b), f);
}

}  // namespace detail

template <class A, class B>
requires NumericOperands<A, B>
auto operator+(const A& a, const B& b) {
  return detail::of_operands<ElementOfOperands<A, B>>(a, b, std::plus<>());
}
template <class A, class B>
requires NumericOperands<A, B>
auto operator-(const A& a, const B& b) {
  return detail::of_operands<ElementOfOperands<A, B>>(a, b, std::minus<>());
}
template <class A, class B>
requires NumericOperands<A, B>
auto operator*(const A& a, const B& b) {
  return detail::of_operands<ElementOfOperands<A, B>>(a, b, std::multiplies<>());
}
/// For floating-point elements.
template <class A, class B>
requires FloatingOperands<A, B>
auto operator/(const A& a, const B& b) {
  return detail::of_operands<ElementOfOperands<A, B>>(a, b, std::divides<>());
}

/// Element-wise comparison. `a == b`, in contrast, returns one bool: whether shapes and elements are equal.
template <class A, class B>
requires ArrayOperands<A, B> Array<bool> equal(const A& a, const B& b) {
  return detail::of_operands<bool>(a, b, std::equal_to<>());
}
template <class A, class B>
requires ArrayOperands<A, B> Array<bool> not_equal(const A& a, const B& b) {
  return detail::of_operands<bool>(a, b, std::not_equal_to<>());
}
template <class A, class B>
requires ArrayOperands<A, B> Array<bool> less(const A& a, const B& b) {
  return detail::of_operands<bool>(a, b, std::less<>());
}
template <class A, class B>
requires ArrayOperands<A, B> Array<bool> less_equal(const A& a, const B& b) {
  return detail::of_operands<bool>(a, b, std::less_equal<>());
}
template <class A, class B>
requires ArrayOperands<A, B> Array<bool> greater(const A& a, const B& b) {
  return detail::of_operands<bool>(a, b, std::greater<>());
}
template <class A, class B>
requires ArrayOperands<A, B> Array<bool> greater_equal(const A& a, const B& b) {
  return detail::of_operands<bool>(a, b, std::greater_equal<>());
}
template <class A, class B>
requires ArrayOperands<A, B> Array<bool>
operator<(const A& a, const B& b) { return less(a, b); }
template <class A, class B>
requires ArrayOperands<A, B> Array<bool>
operator<=(const A& a, const B& b) { return less_equal(a, b); }
template <class A, class B>
requires ArrayOperands<A, B> Array<bool>
operator>(const A& a, const B& b) { return greater(a, b); }
template <class A, class B>
requires ArrayOperands<A, B> Array<bool>
operator>=(const A& a, const B& b) { return greater_equal(a, b); }
/// Element-wise negation of a mask.
inline Array<bool> operator!(const Array<bool>& mask) {
  return elementwise<bool>(mask, Array<bool>::scalar(0), std::equal_to<>());
}

template <class T>
concept Floating = std::is_floating_point_v<T> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

/// The type in which elements are accumulated: float for float and 16-bit numbers, double for double.
template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Converts an element to double.
template <class T>
double widened(T element) {
  return static_cast<double>(static_cast<Accumulator<T>>(element));
}

template <class T>
double l2_norm(std::span<const T> row) {
  double squares = 0;
  for (const T element : row) squares += widened(element) * widened(element);
  return std::sqrt(squares);
}

/// As tf.clip_by_norm: scales each row whose L2 norm exceeds `max_norm` to row * max_norm / norm. `rows`
/// holds consecutive rows of `width` elements.
template <class T>
void clip_by_norm(std::span<T> rows, std::size_t width, double max_norm) {
  for (std::size_t at = 0; at < rows.size(); at += width) {
    const std::span<T> row = rows.subspan(at, width);
    const double norm = l2_norm<T>(row);
    if (!(norm > max_norm)) continue;
    for (T& element : row) {
      element = static_cast<T>(static_cast<Accumulator<T>>(widened(element) * max_norm / norm));
    }
  }
}

/// Converts, in place, gradients with respect to clipped rows to gradients with respect to the unclipped
/// `rows`: removes the component along the row and scales the rest as the row was scaled.
template <class T>
void clip_by_norm_gradient(std::span<const T> rows, std::size_t width, double max_norm,
                           std::span<Accumulator<T>> gradient) {
  for (std::size_t at = 0; at < rows.size(); at += width) {
    const std::span<const T> row = rows.subspan(at, width);
    const std::span<Accumulator<T>> change = gradient.subspan(at, width);
    const double norm = l2_norm<T>(row);
    if (!(norm > max_norm)) continue;
    double along = 0;
    for (std::size_t i = 0; i < width; ++i) along += widened(change[i]) * widened(row[i]) / norm;
    for (std::size_t i = 0; i < width; ++i) {
      const double across = widened(change[i]) - along * widened(row[i]) / norm;
      change[i] = static_cast<Accumulator<T>>(across * max_norm / norm);
    }
  }
}

}  // namespace capstan
