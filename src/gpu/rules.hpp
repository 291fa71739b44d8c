// rules.hpp -- the update rules of optimizers.hpp for single numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "capstan/optimizers.hpp"
#include "gpu/both.hpp"

namespace capstan::gpu {

/// Highway's functions, for vectors of one number.
struct Scalar {};
namespace hn {

template <class T>
CAPSTAN_BOTH T Set(Scalar, T x) {
  return x;
}
template <class T>
CAPSTAN_BOTH T Add(T a, T b) {
  return a + b;
}
template <class T>
CAPSTAN_BOTH T Sub(T a, T b) {
  return a - b;
}
template <class T>
CAPSTAN_BOTH T Mul(T a, T b) {
  return a * b;
}
template <class T>
CAPSTAN_BOTH T Div(T a, T b) {
  return a / b;
}
template <class T>
CAPSTAN_BOTH T MulAdd(T a, T b, T c) {
  return std::fma(a, b, c);
}
template <class T>
CAPSTAN_BOTH T MulSub(T a, T b, T c) {
  return std::fma(a, b, -c);
}
template <class T>
CAPSTAN_BOTH T NegMulAdd(T a, T b, T c) {
  return std::fma(-a, b, c);
}
template <class T>
CAPSTAN_BOTH T Sqrt(T x) {
  return std::sqrt(x);
}
template <class T>
CAPSTAN_BOTH T Min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
CAPSTAN_BOTH T Max(T a, T b) {
  return a < b ? b : a;
}
template <class T>
CAPSTAN_BOTH bool Gt(T a, T b) {
  return a > b;
}
template <class T>
CAPSTAN_BOTH T IfThenElse(bool condition, T yes, T no) {
  return condition ? yes : no;
}
/// Zero of any type.
struct ZeroOf {
  template <class T>
  CAPSTAN_BOTH operator T() const {
    return T{0};
  }
};
CAPSTAN_BOTH ZeroOf Zero(Scalar) { return {}; }
template <class T>
CAPSTAN_BOTH bool Gt(T a, ZeroOf) {
  return a > T{0};
}

}  // namespace hn

template <class T>
CAPSTAN_BOTH T elementwise_pow(Scalar, T x, T power) {
  return std::pow(x, power);
}

#define CAPSTAN_RULE CAPSTAN_BOTH
#include "base/update_rules.inc"
#undef CAPSTAN_RULE

/// w -= round(learning_rate) * g, in integers that wrap around.
template <class T>
struct IntegerSgd {
  static constexpr int kSlots = 0;
  using U = std::make_unsigned_t<T>;
  explicit IntegerSgd(const Optimizer& o) : rate(static_cast<U>(std::llround(o.learning_rate))) {}
  CAPSTAN_BOTH void operator()(Scalar, T g, T& w, T&, T&) const {
    w = static_cast<T>(static_cast<U>(w) - rate * static_cast<U>(g));
  }
  U rate;
};

}  // namespace capstan::gpu
