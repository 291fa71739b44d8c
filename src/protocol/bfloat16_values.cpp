// bfloat16_values.cpp -- conversion loops, compiled by Highway for every vector width of the architecture.
#include "protocol/bfloat16_values.hpp"

#include <bit>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "protocol/bfloat16_values.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace capstan::protocol::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// `count` numbers of 32 bits to 16 bits.
void narrow(const std::uint32_t* from, std::size_t count, std::uint16_t* to) {
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
  for (; i < count; ++i) to[i] = std::bit_cast<std::uint16_t>(bfloat16(std::bit_cast<float>(from[i])));
}

void widen(const std::uint16_t* from, std::size_t count, std::uint32_t* to) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::Rebind<std::uint16_t, decltype(d)> half;
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    hn::StoreU(hn::ShiftLeft<16>(hn::PromoteTo(d, hn::LoadU(half, from + i))), d, to + i);
  }
  for (; i < count; ++i) to[i] = std::uint32_t{from[i]} << 16;
}

}  // namespace capstan::protocol::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::protocol {

HWY_EXPORT(narrow);
HWY_EXPORT(widen);

void to_bfloat16(std::span<const float> from, bfloat16* to) {
  HWY_DYNAMIC_DISPATCH(narrow)
  (reinterpret_cast<const std::uint32_t*>(from.data()), from.size(), reinterpret_cast<std::uint16_t*>(to));
}

void from_bfloat16(std::span<const bfloat16> from, float* to) {
  HWY_DYNAMIC_DISPATCH(widen)
  (reinterpret_cast<const std::uint16_t*>(from.data()), from.size(), reinterpret_cast<std::uint32_t*>(to));
}

}  // namespace capstan::protocol
#endif
