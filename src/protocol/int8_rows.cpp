// int8_rows.cpp -- conversion loops, compiled by Highway for every vector width of the architecture.
#include "protocol/int8_rows.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "protocol/int8_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace capstan::protocol::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The pointers are to bytes, because messages have any alignment.

constexpr float kSteps = 255;
// Between these, a vector of float32 computes steps without overflow or loss of digits. Other rows are
// converted in double.
constexpr float kMinVectorRange = 0x1p-100F;
constexpr float kMaxVectorRange = 0x1p126F;

/// Start of a row in a message.
struct RowScale {
  float minimum = 0;
  float step = 0;

  bool overflows() const noexcept { return step > kMaxVectorRange / 256; }
};

struct Extremes {
  float minimum = 0;
  float maximum = 0;
  bool finite = true;
};

/// Calls `work(i)` for vectors of `lanes` elements from i on that cover `count` elements. The last two may
/// overlap. REQUIRES: count >= lanes.
template <class Work>
HWY_INLINE void for_each_vector(std::size_t count, std::size_t lanes, const Work& work) {
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) work(i);
  if (i < count) work(count - lanes);
}

HWY_INLINE Extremes extremes_of(const std::byte* row, std::size_t width) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> integers;
  const auto* const from = reinterpret_cast<const float*>(row);
  auto low = hn::LoadU(d, from);
  auto high = low;
  auto magnitude = hn::Zero(integers);
  for_each_vector(width, hn::Lanes(d), [&](std::size_t i) {
    const auto x = hn::LoadU(d, from + i);
    low = hn::Min(low, x);
    high = hn::Max(high, x);
    magnitude = hn::Max(magnitude, hn::BitCast(integers, hn::Abs(x)));
  });
  constexpr std::int32_t kInfinity = 0x7F80'0000;
  return {hn::GetLane(hn::MinOfLanes(d, low)), hn::GetLane(hn::MaxOfLanes(d, high)),
          hn::GetLane(hn::MaxOfLanes(integers, magnitude)) < kInfinity};
}

/// Converts a row whose range is too large or too small for float32.
void narrow_in_double(const std::byte* row, std::size_t width, const Extremes& extremes, std::byte* to) {
  const double range = static_cast<double>(extremes.maximum) - static_cast<double>(extremes.minimum);
  RowScale scale{extremes.minimum, static_cast<float>(range / kSteps)};
  // A subnormal step has few digits. Rounded down, it would not reach the maximum.
  if (range < static_cast<double>(kMinVectorRange) && static_cast<double>(scale.step) * kSteps < range)
    scale.step = std::nextafter(scale.step, std::numeric_limits<float>::infinity());
  std::memcpy(to, &scale, sizeof scale);
  for (std::size_t i = 0; i < width; ++i) {
    float x = 0;
    std::memcpy(&x, row + i * sizeof x, sizeof x);
    const double steps = (static_cast<double>(x) - static_cast<double>(scale.minimum)) / scale.step;
    to[sizeof scale + i] = static_cast<std::byte>(std::min(std::nearbyint(steps), 255.0));
  }
}

HWY_INLINE void narrow_row(const std::byte* row, std::size_t width, std::byte* to) {
  const Extremes extremes = extremes_of(row, width);
  const float range = extremes.maximum - extremes.minimum;
  if (!extremes.finite || range == 0) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    const RowScale scale{extremes.finite ? extremes.minimum : kNan, 0};
    std::memcpy(to, &scale, sizeof scale);
    std::memset(to + sizeof scale, 0, width);
    return;
  }
  if (range < kMinVectorRange || range > kMaxVectorRange) return narrow_in_double(row, width, extremes, to);
  const RowScale scale{extremes.minimum, range / kSteps};
  std::memcpy(to, &scale, sizeof scale);
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const auto minimum = hn::Set(d, scale.minimum);
  const auto steps_per_unit = hn::Set(d, kSteps / range);
  const auto* const from = reinterpret_cast<const float*>(row);
  auto* const out = reinterpret_cast<std::uint8_t*>(to + sizeof scale);
  for_each_vector(width, hn::Lanes(d), [&](std::size_t i) {
    const auto steps = hn::Mul(hn::Sub(hn::LoadU(d, from + i), minimum), steps_per_unit);
    hn::StoreU(hn::DemoteTo(bytes, hn::NearestInt(steps)), bytes, out + i);  // saturates at 255
  });
}

void widen_in_double(const RowScale& scale, const std::byte* row, std::size_t width, std::byte* to) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < width; ++i) {
    const double exact =
        static_cast<double>(scale.minimum) + std::to_integer<int>(row[i]) * static_cast<double>(scale.step);
    const auto x = static_cast<float>(std::min(exact, kLargest));
    std::memcpy(to + i * sizeof x, &x, sizeof x);
  }
}

HWY_INLINE void widen_row(const std::byte* from, std::size_t width, std::byte* to) {
  RowScale scale;
  std::memcpy(&scale, from, sizeof scale);
  from += sizeof scale;
  if (scale.overflows()) return widen_in_double(scale, from, width, to);
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::int32_t, decltype(d)> integers;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const auto minimum = hn::Set(d, scale.minimum);
  const auto step = hn::Set(d, scale.step);
  const auto* const in = reinterpret_cast<const std::uint8_t*>(from);
  auto* const out = reinterpret_cast<float*>(to);
  for_each_vector(width, hn::Lanes(d), [&](std::size_t i) {
    const auto steps = hn::ConvertTo(d, hn::PromoteTo(integers, hn::LoadU(bytes, in + i)));
    hn::StoreU(hn::MulAdd(steps, step, minimum), d, out + i);
  });
}

/// Rows shorter than a vector are converted in a copy that is padded to one.
constexpr std::size_t kMaxLanes = HWY_MAX_BYTES / sizeof(float);

void narrow_rows(const std::byte* from, std::size_t rows, std::size_t width, std::byte* to) {
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  const std::size_t row_bytes = width * sizeof(float);
  const std::size_t sent_bytes = int8_row_bytes(width);
  std::byte padded[kMaxLanes * sizeof(float)];
  std::byte sent[sizeof(RowScale) + kMaxLanes];
  for (; rows != 0; --rows, from += row_bytes, to += sent_bytes) {
    if (width >= lanes) {
      narrow_row(from, width, to);
      continue;
    }
    for (std::size_t i = 0; i < lanes; ++i)
      std::memcpy(padded + i * sizeof(float), from + std::min(i, width - 1) * sizeof(float), sizeof(float));
    narrow_row(padded, lanes, sent);
    std::memcpy(to, sent, sent_bytes);
  }
}

void widen_rows(const std::byte* from, std::size_t rows, std::size_t width, std::byte* to) {
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  const std::size_t row_bytes = width * sizeof(float);
  const std::size_t sent_bytes = int8_row_bytes(width);
  std::byte padded[kMaxLanes * sizeof(float)];
  std::byte sent[sizeof(RowScale) + kMaxLanes] = {};
  for (; rows != 0; --rows, from += sent_bytes, to += row_bytes) {
    if (width >= lanes) {
      widen_row(from, width, to);
      continue;
    }
    std::memcpy(sent, from, sent_bytes);
    widen_row(sent, lanes, padded);
    std::memcpy(to, padded, row_bytes);
  }
}

}  // namespace capstan::protocol::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::protocol {

HWY_EXPORT(narrow_rows);
HWY_EXPORT(widen_rows);

void to_int8_rows(std::span<const float> from, std::uint64_t width, std::byte* to) {
  HWY_DYNAMIC_DISPATCH(narrow_rows)
  (reinterpret_cast<const std::byte*>(from.data()), from.size() / width, width, to);
}

void from_int8_rows(std::span<const std::byte> from, std::uint64_t width, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_rows)
  (from.data(), from.size() / int8_row_bytes(width), width, reinterpret_cast<std::byte*>(to));
}

}  // namespace capstan::protocol
#endif
