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

/// Returns the bits of the nearest bfloat16, in the lower halves.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V nearest(D d, V bits) {
  const auto truncated = hn::ShiftRight<16>(bits);
  const auto last_bit = hn::And(truncated, hn::Set(d, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(hn::Set(d, 0x7FFF), last_bit)));
  const auto is_nan = hn::Gt(hn::And(bits, hn::Set(d, 0x7FFF'FFFF)), hn::Set(d, 0x7F80'0000));
  return hn::IfThenElse(is_nan, hn::Or(truncated, hn::Set(d, 0x40)), rounded);
}

/// Hashes counters: the hash "lowbias32" of C. Wellons, "Prospecting for Hash Functions", 2018. Half of the
/// seed is added between its rounds, so that the sequences of two seeds are not shifted copies.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V random_bits(D d, V counters, std::uint64_t seed) {
  auto x = hn::Add(counters, hn::Set(d, static_cast<std::uint32_t>(seed)));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<16>(x)), hn::Set(d, 0x7FEB352D));
  x = hn::Xor(x, hn::Set(d, static_cast<std::uint32_t>(seed >> 32)));
  x = hn::Mul(hn::Xor(x, hn::ShiftRight<15>(x)), hn::Set(d, 0x846CA68B));
  return hn::Xor(x, hn::ShiftRight<16>(x));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V stochastic(D d, V bits, V random) {
  // A carry into the upper half rounds away from zero: its probability is the share of the lower half.
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::ShiftRight<16>(random)));
  const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFF'FFFF));
  const auto has_finite_successor = hn::Lt(magnitude, hn::Set(d, 0x7F7F'0000));
  return hn::IfThenElse(has_finite_successor, rounded, nearest(d, bits));
}

/// Converts `count` numbers of 32 bits to 16 bits by `round(bits, position of the first)`.
template <class Round>
HWY_INLINE void narrow_each(const std::byte* from, std::size_t count, std::byte* to, const Round& round) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::Rebind<std::uint16_t, decltype(d)> half;
  const std::size_t lanes = hn::Lanes(d);
  const auto convert = [&](const std::byte* in, std::byte* out, std::size_t i) {
    const auto bits = hn::LoadU(d, reinterpret_cast<const std::uint32_t*>(in));
    hn::StoreU(hn::TruncateTo(half, round(bits, i)), half, reinterpret_cast<std::uint16_t*>(out));
  };
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) convert(from + i * sizeof(float), to + i * sizeof(bfloat16), i);
  if (i == count) return;
  std::byte wide[HWY_MAX_BYTES] = {};
  std::byte narrowed[HWY_MAX_BYTES / 2];
  std::memcpy(wide, from + i * sizeof(float), (count - i) * sizeof(float));
  convert(wide, narrowed, i);
  std::memcpy(to + i * sizeof(bfloat16), narrowed, (count - i) * sizeof(bfloat16));
}

void narrow(const std::byte* from, std::size_t count, std::byte* to) {
  const hn::ScalableTag<std::uint32_t> d;
  narrow_each(from, count, to, [d](auto bits, std::size_t) { return nearest(d, bits); });
}

void narrow_stochastically(const std::byte* from, std::size_t count, std::byte* to, std::uint64_t seed) {
  const hn::ScalableTag<std::uint32_t> d;
  narrow_each(from, count, to, [d, seed](auto bits, std::size_t i) {
    return stochastic(d, bits, random_bits(d, hn::Iota(d, static_cast<std::uint32_t>(i)), seed));
  });
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
HWY_EXPORT(narrow_stochastically);
HWY_EXPORT(widen);

void to_bfloat16(std::span<const float> from, bfloat16* to) {
  HWY_DYNAMIC_DISPATCH(narrow)
  (reinterpret_cast<const std::byte*>(from.data()), from.size(), reinterpret_cast<std::byte*>(to));
}

void to_bfloat16_stochastically(std::span<const float> from, bfloat16* to, std::uint64_t seed) {
  HWY_DYNAMIC_DISPATCH(narrow_stochastically)
  (reinterpret_cast<const std::byte*>(from.data()), from.size(), reinterpret_cast<std::byte*>(to), seed);
}

void from_bfloat16(std::span<const bfloat16> from, float* to) {
  HWY_DYNAMIC_DISPATCH(widen)
  (reinterpret_cast<const std::byte*>(from.data()), from.size(), reinterpret_cast<std::byte*>(to));
}

}  // namespace capstan::protocol
#endif
