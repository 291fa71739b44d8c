// dtype.hpp -- the element types that a variable may have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace capstan {

/// Sent over the wire and stored in checkpoints: add at the end, never renumber.
enum class DType : std::uint8_t { float32 = 1, float64 = 2, int64 = 3 };

constexpr std::size_t size_of(DType dtype) noexcept { return dtype == DType::float32 ? 4 : 8; }

constexpr std::string_view to_string(DType dtype) noexcept {
  switch (dtype) {
    case DType::float32:
      return "float32";
    case DType::float64:
      return "float64";
    case DType::int64:
      return "int64";
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
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace capstan
