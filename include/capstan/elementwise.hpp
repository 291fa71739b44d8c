// elementwise.hpp -- arithmetic and comparisons of arrays, element by element. A comparison makes a mask.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>

#include "capstan/array.hpp"

namespace capstan {

/// f of the elements of two arrays of one shape; an array without axes goes with every element of the other.
/// Throws Error(invalid_argument) for other shapes.
template <class Result, class T, class F>
Array<Result> elementwise(const Array<T>& a, const Array<T>& b, F f) {
  const bool one_a = a.rank() == 0;
  const bool one_b = b.rank() == 0;
  if (a.shape != b.shape && !one_a && !one_b) {
    throw Error(Code::invalid_argument, "arrays of shapes " + to_string(a.shape) + " and " +
                                            to_string(b.shape) + " do not go together element by element");
  }
  Array<Result> out(one_a ? b.shape : a.shape);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out.values[i] = static_cast<Element<Result>>(f(a.values[one_a ? 0 : i], b.values[one_b ? 0 : i]));
  }
  return out;
}

template <class T>
concept Number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

template <Number T>
Array<T> operator+(const Array<T>& a, const Array<T>& b) {
  return elementwise<T>(a, b, std::plus<>());
}
template <Number T>
Array<T> operator-(const Array<T>& a, const Array<T>& b) {
  return elementwise<T>(a, b, std::minus<>());
}
template <Number T>
Array<T> operator*(const Array<T>& a, const Array<T>& b) {
  return elementwise<T>(a, b, std::multiplies<>());
}
/// Of floating-point numbers.
template <std::floating_point T>
Array<T> operator/(const Array<T>& a, const Array<T>& b) {
  return elementwise<T>(a, b, std::divides<>());
}
/// With one number: `array * 2`.
template <Number T>
Array<T> operator+(const Array<T>& a, std::type_identity_t<T> b) {
  return a + Array<T>::scalar(b);
}
template <Number T>
Array<T> operator-(const Array<T>& a, std::type_identity_t<T> b) {
  return a - Array<T>::scalar(b);
}
template <Number T>
Array<T> operator*(const Array<T>& a, std::type_identity_t<T> b) {
  return a * Array<T>::scalar(b);
}
template <std::floating_point T>
Array<T> operator/(const Array<T>& a, std::type_identity_t<T> b) {
  return a / Array<T>::scalar(b);
}

/// Where elements are the same. (`a == b` is one bool: same shape and same elements.)
template <class T>
Array<bool> equal(const Array<T>& a, const Array<T>& b) {
  return elementwise<bool>(a, b, std::equal_to<>());
}
template <class T>
Array<bool> less(const Array<T>& a, const Array<T>& b) {
  return elementwise<bool>(a, b, std::less<>());
}
template <class T>
Array<bool> greater(const Array<T>& a, const Array<T>& b) {
  return elementwise<bool>(a, b, std::greater<>());
}
/// Where the mask is false.
inline Array<bool> operator!(const Array<bool>& mask) {
  return elementwise<bool>(mask, Array<bool>::scalar(0), std::equal_to<>());
}

}  // namespace capstan
