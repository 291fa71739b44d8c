// with_type.hpp -- from a dtype that is known at run time to the C++ type of its elements.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/assert.hpp"
#include "capstan/dtype.hpp"

namespace capstan {

/// Calls f(std::type_identity<T>()) for the type that an element of `dtype` has in memory: a bool is a
/// std::uint8_t there.
template <class F>
decltype(auto) with_type(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float32:
      return f(std::type_identity<float>());
    case DType::float64:
      return f(std::type_identity<double>());
    case DType::int64:
      return f(std::type_identity<std::int64_t>());
    case DType::int32:
      return f(std::type_identity<std::int32_t>());
    case DType::float16:
      return f(std::type_identity<float16>());
    case DType::bfloat16:
      return f(std::type_identity<bfloat16>());
    case DType::boolean:
      return f(std::type_identity<std::uint8_t>());
  }
  CAPSTAN_ASSERT(!"a dtype");
  return f(std::type_identity<float>());
}

/// What arithmetic on a T is done in: float for the 16-bit types.
template <class T>
using Arithmetic = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;

/// What sums, differences and products of a T are made in: integers wrap around there, as TensorFlow's do.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<Arithmetic<T>>>::type;

}  // namespace capstan
