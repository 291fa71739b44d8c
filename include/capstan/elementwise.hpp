// elementwise.hpp -- arithmetic and comparisons of arrays, element by element. A comparison makes a mask.
//
// An operand is an Array, a number (which goes with every element), or a variable, which is read whole: `x *
// w` of a variable w is `x * w.read()`, also where w has several shards.
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

/// The element type of an operand: of an Array, or of what reads as one, such as a Variable.
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

/// A number that goes with elements of type T; a fraction does not go with integers.
template <class N, class T>
concept NumberOperand =
    !ArrayOperand<N> && std::convertible_to<N, T> && !(std::floating_point<N> && std::integral<T>);

/// Two arrays of one element type, or one and a number.
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
    return (operand);  // itself, not a copy
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
/// Of floating-point numbers.
template <class A, class B>
requires FloatingOperands<A, B>
auto operator/(const A& a, const B& b) {
  return detail::of_operands<ElementOfOperands<A, B>>(a, b, std::divides<>());
}

/// Where elements are the same. (`a == b` is one bool: same shape and same elements.)
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
/// Where the mask is false.
inline Array<bool> operator!(const Array<bool>& mask) {
  return elementwise<bool>(mask, Array<bool>::scalar(0), std::equal_to<>());
}

}  // namespace capstan
