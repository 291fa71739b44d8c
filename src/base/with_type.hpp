// with_type.hpp -- dispatches from a run-time dtype to the C++ type of its elements.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/assert.hpp"
#include "capstan/dtype.hpp"

namespace capstan {

/// Calls f(std::type_identity<T>()) with the in-memory element type of `dtype`. For a bool it is
/// std::uint8_t.
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

/// Type in which arithmetic on a T is computed: float for the 16-bit types.
template <class T>
using Arithmetic = std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;

/// Type in which sums, differences and products of a T are computed: integers wrap around as in TensorFlow.
template <class T>
using Wrapping = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                             std::type_identity<Arithmetic<T>>>::type;

}  // namespace capstan
