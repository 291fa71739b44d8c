// bfloat16_values.cpp -- conversion loops, compiled by Highway for every vector width of the architecture.
#include "protocol/bfloat16_values.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "protocol/bfloat16_values.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace capstan::protocol::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The pointers are to bytes, because messages have any alignment.

/// Converts `count` numbers of 32 bits to 16 bits.
void narrow(const std::byte* from_bytes, std::size_t count, std::byte* to_bytes) {
  const auto* from = reinterpret_cast<const std::uint32_t*>(from_bytes);
  auto* to = reinterpret_cast<std::uint16_t*>(to_bytes);
  const hn::ScalableTag<std::uint32_t> d;
  const hn::Rebind<std::uint16_t, decltype(d)> half;
  const auto magnitude = hn::Set(d, 0x7FFF'FFFF);
  const auto infinity = hn::Set(d, 0x7F80'0000);
  const auto below_half = hn::Set(d, 0x7FFF);
  const auto one = hn::Set(d, 1);
  const auto quiet = hn::Set(d, 0x40);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto bits = hn::LoadU(d, from + i);
    const auto truncated = hn::ShiftRight<16>(bits);
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(below_half, hn::And(truncated, one))));
    const auto is_nan = hn::Gt(hn::And(bits, magnitude), infinity);
    hn::StoreU(hn::TruncateTo(half, hn::IfThenElse(is_nan, hn::Or(truncated, quiet), rounded)), half, to + i);
  }
  for (; i < count; ++i) {
    float value = 0;
    std::memcpy(&value, from_bytes + i * sizeof value, sizeof value);
    const bfloat16 rounded(value);
    std::memcpy(to_bytes + i * sizeof rounded, &rounded, sizeof rounded);
  }
}

void widen(const std::byte* from_bytes, std::size_t count, std::byte* to_bytes) {
  const auto* from = reinterpret_cast<const std::uint16_t*>(from_bytes);
  auto* to = reinterpret_cast<std::uint32_t*>(to_bytes);
  const hn::ScalableTag<std::uint32_t> d;
  const hn::Rebind<std::uint16_t, decltype(d)> half;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    hn::StoreU(hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(half, from + i))), d, to + i);
  }
  for (; i < count; ++i) {
    bfloat16 value;
    std::memcpy(&value, from_bytes + i * sizeof value, sizeof value);
    const auto wide = static_cast<float>(value);
    std::memcpy(to_bytes + i * sizeof wide, &wide, sizeof wide);
  }
}

}  // namespace capstan::protocol::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::protocol {

HWY_EXPORT(narrow);
HWY_EXPORT(widen);

void to_bfloat16(std::span<const float> from, bfloat16* to) {
  HWY_DYNAMIC_DISPATCH(narrow)
  (reinterpret_cast<const std::byte*>(from.data()), from.size(), reinterpret_cast<std::byte*>(to));
}

void from_bfloat16(std::span<const bfloat16> from, float* to) {
  HWY_DYNAMIC_DISPATCH(widen)
  (reinterpret_cast<const std::byte*>(from.data()), from.size(), reinterpret_cast<std::byte*>(to));
}

}  // namespace capstan::protocol
#endif
