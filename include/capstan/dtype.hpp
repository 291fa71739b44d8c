// dtype.hpp -- the dtypes of variables, and 16-bit floating-point numbers.
#pragma once

#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace capstan {

/// IEEE 754 binary16: 11 bits of precision, up to 65,504. Rounds to nearest, ties to even.
class float16 {
 public:
  constexpr float16() = default;
  constexpr explicit float16(float value) : bits_(round(std::bit_cast<std::uint32_t>(value))) {}
  constexpr explicit operator float() const {
    const std::uint32_t sign = (bits_ & 0x8000U) << 16;
    const std::uint32_t exponent = (bits_ >> 10) & 31U;
    const std::uint32_t fraction = bits_ & 1023U;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | (fraction << 13));
    if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
    const float small = static_cast<float>(fraction) * 0x1p-24F;  // zero or subnormal: exact in float
    return sign != 0 ? -small : small;
  }

  static constexpr float16 from_bits(std::uint16_t bits) {
    float16 value;
    value.bits_ = bits;
    return value;
  }
  constexpr std::uint16_t bits() const { return bits_; }
  friend constexpr bool operator==(float16 a, float16 b) {
    return static_cast<float>(a) == static_cast<float>(b);
  }
  friend constexpr std::partial_ordering operator<=>(float16 a, float16 b) {
    return static_cast<float>(a) <=> static_cast<float>(b);
  }

 private:
  static constexpr std::uint16_t round(std::uint32_t bits) {
    const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) return sign | 0x7E00U;   // NaN
    if (magnitude >= 0x477FF000U) return sign | 0x7C00U;  // 65,520 and more: infinity
    if (magnitude < 0x33000001U) return sign;             // up to 2^-25: zero
    const std::uint32_t exponent = magnitude >> 23;
    const std::uint32_t fraction = (magnitude & 0x7FFFFFU) | 0x800000U;
    // Subnormals below 2^-14 lose a bit of fraction for each power of two.
    const std::uint32_t shift = exponent < 113 ? 126 - exponent : 13;
    const std::uint32_t quotient = fraction >> shift;
    const std::uint32_t remainder = fraction & ((1U << shift) - 1);
    const std::uint32_t half = 1U << (shift - 1);
    const std::uint32_t up = remainder > half || (remainder == half && (quotient & 1U) != 0) ? 1 : 0;
    const std::uint32_t base = exponent < 113 ? quotient : ((exponent - 112) << 10) + quotient - 1024;
    return static_cast<std::uint16_t>(sign | (base + up));  // a carry correctly increments the exponent
  }
  std::uint16_t bits_ = 0;
};

/// The upper half of a float: the range of float, 8 bits of precision. Rounds to nearest, ties to even.
class bfloat16 {
 public:
  constexpr bfloat16() = default;
  constexpr explicit bfloat16(float value) : bits_(round(std::bit_cast<std::uint32_t>(value))) {}
  constexpr explicit operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16);
  }

  static constexpr bfloat16 from_bits(std::uint16_t bits) {
    bfloat16 value;
    value.bits_ = bits;
    return value;
  }
  constexpr std::uint16_t bits() const { return bits_; }
  friend constexpr bool operator==(bfloat16 a, bfloat16 b) {
    return static_cast<float>(a) == static_cast<float>(b);
  }
  friend constexpr std::partial_ordering operator<=>(bfloat16 a, bfloat16 b) {
    return static_cast<float>(a) <=> static_cast<float>(b);
  }

 private:
  static constexpr std::uint16_t round(std::uint32_t bits) {
    if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {  // NaN: sets the quiet bit, so that it stays a NaN
      return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
    }
    return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
  }
  std::uint16_t bits_ = 0;
};

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

/// Size of an element in bytes.
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

/// Returns true for floating-point dtypes, which any optimizer can train.
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

/// The dtype of a C++ type. A type without one does not compile.
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
