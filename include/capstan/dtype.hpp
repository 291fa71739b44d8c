// dtype.hpp -- the element types that a variable may have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "capstan/half.hpp"

namespace capstan {

/// Sent over the wire and stored in checkpoints: add at the end, never renumber.
enum class DType : std::uint8_t {
  float32 = 1,
  float64 = 2,
  int64 = 3,
  int32 = 4,
  float16 = 5,
  bfloat16 = 6,
  boolean = 7,  // a byte, 0 or 1
};

inline constexpr DType kDTypes[] = {DType::float32, DType::float64,  DType::int64,  DType::int32,
                                    DType::float16, DType::bfloat16, DType::boolean};

/// Bytes of an element.
constexpr std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::float64:
    case DType::int64:
      return 8;
    case DType::float32:
    case DType::int32:
      return 4;
    case DType::float16:
    case DType::bfloat16:
      return 2;
    case DType::boolean:
      return 1;
  }
  return 0;
}

/// Has a fraction, so gradients make sense with any optimizer.
constexpr bool is_floating(DType dtype) noexcept {
  return dtype == DType::float32 || dtype == DType::float64 || dtype == DType::float16 ||
         dtype == DType::bfloat16;
}

constexpr std::string_view to_string(DType dtype) noexcept {
  switch (dtype) {
    case DType::float32:
      return "float32";
    case DType::float64:
      return "float64";
    case DType::int64:
      return "int64";
    case DType::int32:
      return "int32";
    case DType::float16:
      return "float16";
    case DType::bfloat16:
      return "bfloat16";
    case DType::boolean:
      return "bool";
  }
  return "unknown";
}

/// The dtype of a C++ type; a type that no variable can have does not compile.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::float32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::float64;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::int64;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::int32;
};
template <>
struct DTypeOf<float16> {
  static constexpr DType value = DType::float16;
};
template <>
struct DTypeOf<bfloat16> {
  static constexpr DType value = DType::bfloat16;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace capstan
