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
// If the range of a row is between these, and not below this share of the largest magnitude, a vector of
// float32 computes steps without overflow or loss of digits. Other rows are converted in double.
constexpr float kMinVectorRange = 0x1p-100F;
constexpr float kMaxVectorRange = 0x1p126F;
constexpr float kMinVectorShare = 0x1p-12F;

/// Start of a converted row.
struct RowScale {
  float minimum = 0;
  float maximum = 0;

  float range() const noexcept { return maximum - minimum; }
  double exact_range() const noexcept { return static_cast<double>(maximum) - static_cast<double>(minimum); }
  bool fits_vectors() const noexcept {
    const float magnitude = std::max(std::abs(minimum), std::abs(maximum));
    return range() >= std::max(kMinVectorRange, magnitude * kMinVectorShare) && range() <= kMaxVectorRange;
  }
  /// Returns an element of a row that does not fit vectors.
  float element(double byte) const noexcept {
    if (byte == static_cast<double>(kSteps)) return maximum;
    return static_cast<float>(static_cast<double>(minimum) +
                              byte * (exact_range() / static_cast<double>(kSteps)));
  }
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

/// Rounds elements to nearest.
class ToNearest {
 public:
  template <class D, class V = hn::Vec<D>, class ElementOf>
  HWY_INLINE V operator()(D /*d*/, V /*x*/, V steps, const ElementOf& /*element*/,
                          std::size_t /*first*/) const {
    return hn::Round(steps);
  }
  /// Of the adjacent bytes, returns the one whose element is closest to x: elements of a small range may be
  /// equal, and then differ from their steps by more than half a step.
  double operator()(const RowScale& scale, float x, double steps, std::size_t /*element*/) const {
    const double middle = std::nearbyint(steps);
    double best = std::clamp(middle, 0.0, 255.0);
    for (const double byte : {middle - 1, middle + 1}) {
      if (byte >= 0 && byte <= 255 && distance(scale, x, byte) < distance(scale, x, best)) best = byte;
    }
    return best;
  }

 private:
  static double distance(const RowScale& scale, float x, double byte) {
    return std::abs(static_cast<double>(scale.element(byte)) - static_cast<double>(x));
  }
};

/// Rounds elements up with a probability that is the share of a step above the lower byte. An element of a
/// converted row keeps its byte: its computed steps have an error, which must not move it by a whole step.
class Stochastic {
 public:
  Stochastic(std::uint64_t seed, std::uint64_t first_element) : seed_(seed), first_element_(first_element) {}

  template <class D, class V = hn::Vec<D>, class ElementOf>
  HWY_INLINE V operator()(D d, V x, V steps, const ElementOf& element, std::size_t first) const {
    HWY_ALIGN float uniform[kMaxFloats];
    for (std::size_t i = 0; i < hn::Lanes(d); ++i) uniform[i] = uniform_of(first + i);
    const auto lower = hn::Floor(steps);
    const auto rounds_up = hn::Lt(hn::Load(d, uniform), hn::Sub(steps, lower));
    const auto drawn = hn::Add(lower, hn::IfThenElseZero(rounds_up, hn::Set(d, 1.0F)));
    const auto near = hn::Round(steps);
    return hn::IfThenElse(hn::Eq(element(near), x), near, drawn);
  }
  double operator()(const RowScale& scale, float x, double steps, std::size_t element) const {
    const double near = ToNearest()(scale, x, steps, element);
    if (scale.element(near) == x) return near;
    const double lower = std::floor(steps);
    return std::min(lower + (static_cast<double>(uniform_of(element)) < steps - lower ? 1 : 0), 255.0);
  }

 private:
  static constexpr std::size_t kMaxFloats = HWY_MAX_BYTES / sizeof(float);
  float uniform_of(std::size_t element) const {
    return static_cast<float>(gpu::random_bits(seed_, first_element_ + element) >> 8) * 0x1p-24F;
  }

  std::uint64_t seed_;
  std::uint64_t first_element_;
};

template <class Round>
void narrow_in_double(const std::byte* row, std::size_t width, const RowScale& scale, const Round& round,
                      std::byte* to) {
  const double step = scale.exact_range() / static_cast<double>(kSteps);
  for (std::size_t i = 0; i < width; ++i) {
    float x = 0;
    std::memcpy(&x, row + i * sizeof x, sizeof x);
    const double steps = (static_cast<double>(x) - static_cast<double>(scale.minimum)) / step;
    to[i] = static_cast<std::byte>(x == scale.maximum ? 255.0 : round(scale, x, steps, i));
  }
}

template <class Round>
HWY_INLINE void narrow_row(const std::byte* row, std::size_t width, const Round& round, std::byte* to) {
  const Extremes extremes = extremes_of(row, width);
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  const RowScale scale =
      extremes.finite ? RowScale{extremes.minimum, extremes.maximum} : RowScale{kNan, kNan};
  std::memcpy(to, &scale, sizeof scale);
  to += sizeof scale;
  if (!extremes.finite || scale.minimum == scale.maximum) {
    std::memset(to, 0, width);
    return;
  }
  if (!scale.fits_vectors()) return narrow_in_double(row, width, scale, round, to);
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const auto minimum = hn::Set(d, scale.minimum);
  const auto maximum = hn::Set(d, scale.maximum);
  const auto steps_per_unit = hn::Set(d, kSteps / scale.range());
  const auto step = hn::Set(d, scale.range() / kSteps);
  const auto element = [&](hn::Vec<decltype(d)> steps) { return hn::MulAdd(steps, step, minimum); };
  const auto* const from = reinterpret_cast<const float*>(row);
  auto* const out = reinterpret_cast<std::uint8_t*>(to);
  for_each_vector(width, hn::Lanes(d), [&](std::size_t i) {
    const auto x = hn::LoadU(d, from + i);
    const auto rounded = round(d, x, hn::Mul(hn::Sub(x, minimum), steps_per_unit), element, i);
    const auto steps = hn::IfThenElse(hn::Eq(x, maximum), hn::Set(d, kSteps), rounded);
    hn::StoreU(hn::DemoteTo(bytes, hn::NearestInt(steps)), bytes, out + i);  // saturates at 255
  });
}

void widen_in_double(const RowScale& scale, const std::byte* row, std::size_t width, std::byte* to) {
  for (std::size_t i = 0; i < width; ++i) {
    const float x = scale.element(std::to_integer<int>(row[i]));
    std::memcpy(to + i * sizeof x, &x, sizeof x);
  }
}

HWY_INLINE void widen_row(const RowScale& scale, const std::byte* from, std::size_t width, std::byte* to) {
  if (scale.minimum != scale.maximum && !scale.fits_vectors()) return widen_in_double(scale, from, width, to);
  const hn::ScalableTag<float> d;
  const hn::Rebind<std::int32_t, decltype(d)> integers;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const auto minimum = hn::Set(d, scale.minimum);
  const auto maximum = hn::Set(d, scale.maximum);
  const auto step = hn::Set(d, scale.range() / kSteps);
  const auto most = hn::Set(d, kSteps);
  const auto* const in = reinterpret_cast<const std::uint8_t*>(from);
  auto* const out = reinterpret_cast<float*>(to);
  for_each_vector(width, hn::Lanes(d), [&](std::size_t i) {
    const auto steps = hn::ConvertTo(d, hn::PromoteTo(integers, hn::LoadU(bytes, in + i)));
    const auto x = hn::MulAdd(steps, step, minimum);
    hn::StoreU(hn::IfThenElse(hn::Eq(steps, most), maximum, x), d, out + i);
  });
}

/// Rows shorter than a vector are converted in a copy that is padded to one.
constexpr std::size_t kMaxLanes = HWY_MAX_BYTES / sizeof(float);

template <class Round>
HWY_INLINE void narrow_any_row(const std::byte* from, std::size_t width, const Round& round, std::byte* to) {
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  if (width >= lanes) return narrow_row(from, width, round, to);
  std::byte padded[kMaxLanes * sizeof(float)];
  std::byte sent[sizeof(RowScale) + kMaxLanes];
  for (std::size_t i = 0; i < lanes; ++i)
    std::memcpy(padded + i * sizeof(float), from + std::min(i, width - 1) * sizeof(float), sizeof(float));
  narrow_row(padded, lanes, round, sent);
  std::memcpy(to, sent, int8_row_bytes(width));
}

/// Converts `count` elements of a row, from number `first` on.
HWY_INLINE void widen_part(const std::byte* row, std::size_t first, std::size_t count, std::byte* to) {
  RowScale scale;
  std::memcpy(&scale, row, sizeof scale);
  const std::byte* const from = row + sizeof scale + first;
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<float>());
  if (count >= lanes) return widen_row(scale, from, count, to);
  std::byte padded[kMaxLanes * sizeof(float)];
  std::byte sent[kMaxLanes] = {};
  std::memcpy(sent, from, count);
  widen_row(scale, sent, lanes, padded);
  std::memcpy(to, padded, count * sizeof(float));
}

void narrow_rows(const std::byte* from, std::size_t rows, std::size_t width, std::byte* to) {
  for (; rows != 0; --rows, from += width * sizeof(float), to += int8_row_bytes(width))
    narrow_any_row(from, width, ToNearest(), to);
}

void narrow_stochastically(const std::byte* from, std::size_t width, std::uint64_t seed,
                           std::uint64_t first_element, std::byte* to) {
  narrow_any_row(from, width, Stochastic(seed, first_element), to);
}

void widen_rows(const std::byte* from, std::size_t rows, std::size_t width, std::byte* to) {
  for (; rows != 0; --rows, from += int8_row_bytes(width), to += width * sizeof(float))
    widen_part(from, 0, width, to);
}

void gather_and_widen(const std::byte* table, std::size_t width, const std::uint32_t* rows, std::size_t count,
                      std::byte* to) {
  constexpr std::size_t kAhead = 16;
  constexpr std::uint64_t kCacheLine = 64;
  const std::uint64_t row_bytes = int8_row_bytes(width);
  const auto row = [&](std::size_t i) { return table + rows[i] * row_bytes; };
  for (std::size_t i = 0; i < count; ++i, to += width * sizeof(float)) {
    const std::byte* const ahead = row(std::min(i + kAhead, count - 1));
    for (std::uint64_t at = 0; at < row_bytes; at += kCacheLine) __builtin_prefetch(ahead + at);
    widen_part(row(i), 0, width, to);
  }
}

}  // namespace capstan::protocol::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::protocol {

HWY_EXPORT(narrow_rows);
HWY_EXPORT(narrow_stochastically);
HWY_EXPORT(widen_part);
HWY_EXPORT(widen_rows);
HWY_EXPORT(gather_and_widen);

void to_int8_rows(std::span<const float> from, std::uint64_t width, std::byte* to) {
  HWY_DYNAMIC_DISPATCH(narrow_rows)
  (reinterpret_cast<const std::byte*>(from.data()), from.size() / width, width, to);
}

void to_int8_row(std::span<const float> row, const gpu::Rounding& rounding, std::uint64_t first_element,
                 std::byte* to) {
  const auto* const from = reinterpret_cast<const std::byte*>(row.data());
  if (!rounding.stochastic) return HWY_DYNAMIC_DISPATCH(narrow_rows)(from, 1, row.size(), to);
  HWY_DYNAMIC_DISPATCH(narrow_stochastically)(from, row.size(), rounding.seed, first_element, to);
}

void from_int8_rows(std::span<const std::byte> from, std::uint64_t width, float* to) {
  HWY_DYNAMIC_DISPATCH(widen_rows)
  (from.data(), from.size() / int8_row_bytes(width), width, reinterpret_cast<std::byte*>(to));
}

void from_int8_row(std::span<const std::byte> row, std::uint64_t first_element, std::span<float> to) {
  HWY_DYNAMIC_DISPATCH(widen_part)
  (row.data(), first_element, to.size(), reinterpret_cast<std::byte*>(to.data()));
}

void gather_int8_rows(const std::byte* table, std::uint64_t width, std::span<const std::uint32_t> rows,
                      float* to) {
  HWY_DYNAMIC_DISPATCH(gather_and_widen)
  (table, width, rows.data(), rows.size(), reinterpret_cast<std::byte*>(to));
}

}  // namespace capstan::protocol
#endif
