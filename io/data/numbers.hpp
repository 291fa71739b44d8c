// numbers.hpp -- parses numbers: a fast path for short ones, std::from_chars for all others.
#pragma once

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace capstan::io {

/// These functions return the first character after the number, or null if there is no number or it is out of
/// range.

inline const char* parse_integer(const char* at, const char* end, std::int64_t& value) {
  std::uint64_t number = 0;
  const char* first = at;
  for (; at != end && static_cast<unsigned>(*at - '0') < 10; ++at) {
    number = number * 10 + static_cast<unsigned>(*at - '0');
  }
  constexpr std::ptrdiff_t kAlwaysFit = 18;
  if (at != first && at - first <= kAlwaysFit) {
    value = static_cast<std::int64_t>(number);
    return at;
  }
  const auto [behind, error] = std::from_chars(first, end, value);
  return error == std::errc() ? behind : nullptr;
}

/// Unlike from_chars, also accepts a leading '+' and values too small for float, which become denormal or 0.
inline const char* parse_float_slowly(const char* at, const char* end, float& value) {
  if (at != end && *at == '+') {
    ++at;
    if (at != end && *at == '-') return nullptr;
  }
  const auto [behind, error] = std::from_chars(at, end, value);
  if (error == std::errc()) return behind;
  if (error != std::errc::result_out_of_range) return nullptr;
  double wide = 0;
  if (std::from_chars(at, end, wide).ec != std::errc() || std::abs(wide) > 1) return nullptr;
  value = static_cast<float>(wide);
  return behind;
}

/// Rounds correctly, as from_chars does. An integer below 2^53, divided by a power of ten that is exact in a
/// double, gives a correctly rounded double. This double rounds to the correct float unless it lies halfway
/// between two floats.
inline const char* parse_float(const char* at, const char* end, float& value) {
  static constexpr std::array<double, 23> kPowers{1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                  1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                  1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const char* const first = at;
  const bool negative = at != end && *at == '-';
  if (negative) ++at;
  std::uint64_t number = 0;
  const char* digits = at;
  for (; at != end && static_cast<unsigned>(*at - '0') < 10; ++at) {
    number = number * 10 + static_cast<unsigned>(*at - '0');
  }
  std::ptrdiff_t count = at - digits;
  std::size_t fraction = 0;
  if (at != end && *at == '.') {
    const char* point = ++at;
    for (; at != end && static_cast<unsigned>(*at - '0') < 10; ++at) {
      number = number * 10 + static_cast<unsigned>(*at - '0');
    }
    fraction = static_cast<std::size_t>(at - point);
    count += at - point;
  }
  constexpr std::ptrdiff_t kNoOverflow = 19;
  const bool has_exponent = at != end && (*at | 0x20) == 'e';
  if (count == 0 || count > kNoOverflow || number >> 53 != 0 || fraction >= kPowers.size() || has_exponent) {
    return parse_float_slowly(first, end, value);
  }
  const double exact = static_cast<double>(number) / kPowers[fraction];
  constexpr std::uint64_t kBelowFloat = (std::uint64_t{1} << 29) - 1, kHalfway = std::uint64_t{1} << 28;
  const bool is_halfway = (std::bit_cast<std::uint64_t>(exact) & kBelowFloat) == kHalfway;
  if (is_halfway && fraction != 0) return parse_float_slowly(first, end, value);
  value = static_cast<float>(negative ? -exact : exact);
  return at;
}

}  // namespace capstan::io
