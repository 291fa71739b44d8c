// kernel_loop.hpp -- applies an update rule to all rows of an update. Only for kernels.cpp.
#if defined(CAPSTAN_PS_KERNEL_LOOP_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CAPSTAN_PS_KERNEL_LOOP_HPP
#undef CAPSTAN_PS_KERNEL_LOOP_HPP
#else
#define CAPSTAN_PS_KERNEL_LOOP_HPP
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ps/update/kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace capstan::ps::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::uint64_t kLineBytes = 64;
/// Prefetch distance: this many cache lines of values and slots together, but at least kRowsAhead rows. Tuned
/// on rows of 16 to 256 floats (docs/performance.md#near-and-distant-cores).
constexpr std::uint64_t kLinesAhead = 64;
constexpr std::uint64_t kRowsAhead = 4;
/// Vectors, and cache lines to prefetch, per turn of a loop.
constexpr std::uint64_t kUnrolled = 4;

/// Addresses of a row in the arrays of an update; unused slots alias the values.
template <int kSlots, class T>
struct Row {
  T *w, *a, *b;
  Row(const Update<T>& u, std::uint64_t row) : w(u.values + row * u.width), a(w), b(w) {
    if constexpr (kSlots > 0) a = u.slot0 + row * u.width;
    if constexpr (kSlots > 1) b = u.slot1 + row * u.width;
  }
  /// Prefetches the cache line of element j of each array for writing.
  HWY_INLINE void prefetch(std::uint64_t j) const {
    __builtin_prefetch(w + j, 1);
    if constexpr (kSlots > 0) __builtin_prefetch(a + j, 1);
    if constexpr (kSlots > 1) __builtin_prefetch(b + j, 1);
  }
};

template <class Rule, class D, class T>
HWY_INLINE void update_vector(const Rule& rule, D d, const Row<Rule::kSlots, T>& row, std::uint64_t j,
                              const T* gradient) {
  const auto g = hn::LoadU(d, gradient + j);
  auto w = hn::LoadU(d, row.w + j);
  auto a = w;
  auto b = w;
  if constexpr (Rule::kSlots > 0) a = hn::LoadU(d, row.a + j);
  if constexpr (Rule::kSlots > 1) b = hn::LoadU(d, row.b + j);
  rule(d, g, w, a, b);
  hn::StoreU(w, d, row.w + j);
  if constexpr (Rule::kSlots > 0) hn::StoreU(a, d, row.a + j);
  if constexpr (Rule::kSlots > 1) hn::StoreU(b, d, row.b + j);
}

/// Updates the elements from j on, fewer than a full vector: with vectors of kLanes elements, then kLanes /
/// 2, and so on.
template <std::size_t kLanes, class Rule, class T>
HWY_INLINE void update_tail(const Rule& rule, const Row<Rule::kSlots, T>& row, std::uint64_t j,
                            std::uint64_t width, const T* gradient) {
  if constexpr (kLanes > 0) {
    const hn::CappedTag<T, kLanes> d;
    for (; j + hn::Lanes(d) <= width; j += hn::Lanes(d)) update_vector(rule, d, row, j, gradient);
    update_tail<kLanes / 2>(rule, row, j, width, gradient);
  }
}

template <class Rule, class T>
HWY_INLINE void update_row(const Rule& rule, const Row<Rule::kSlots, T>& row, std::uint64_t width,
                           const T* gradient) {
  const hn::ScalableTag<T> d;
  const std::uint64_t lanes = hn::Lanes(d);
  std::uint64_t j = 0;
  for (; j + kUnrolled * lanes <= width; j += kUnrolled * lanes) {
    for (std::uint64_t v = 0; v < kUnrolled; ++v) update_vector(rule, d, row, j + v * lanes, gradient);
  }
  for (; j + lanes <= width; j += lanes) update_vector(rule, d, row, j, gradient);
  if (j < width) update_tail<HWY_MAX_BYTES / sizeof(T) / 2>(rule, row, j, width, gradient);
}

// Both loops take their arguments by value: no store to the arrays can alias the copies, so these stay in
// registers.

template <class Rule, class T>
void consecutive_rows(Rule rule, const Update<T> u) {
  for (std::uint64_t i = 0; i < u.count; ++i) {
    const Row<Rule::kSlots, T> row(u, u.first_row + i);
    update_row(rule, row, u.width, u.gradient_of(i));
  }
}

/// With `kWidth`, all rows have this many elements, so the compiler unrolls the loops over a row.
template <std::uint64_t kWidth, class Rule, class T>
void scattered_rows(Rule rule, Update<T> u) {
  if constexpr (kWidth != 0) u.width = kWidth;
  constexpr std::uint64_t kLine = kLineBytes / sizeof(T);
  const std::uint64_t lines = hwy::DivCeil(u.width, kLine) * (1 + Rule::kSlots);
  const std::uint64_t ahead = std::max(kRowsAhead, kLinesAhead / std::max<std::uint64_t>(lines, 1));
  const bool ragged = u.width % kLine != 0;  // the last element may be in a line of its own
  for (std::uint64_t i = 0; i < u.count; ++i) {
    const Row<Rule::kSlots, T> later(u, u.rows[std::min(i + ahead, u.count - 1)]);
    std::uint64_t j = 0;
    for (; j + kUnrolled * kLine <= u.width; j += kUnrolled * kLine) {
      for (std::uint64_t line = 0; line < kUnrolled; ++line) later.prefetch(j + line * kLine);
    }
    for (; j < u.width; j += kLine) later.prefetch(j);
    if (ragged) later.prefetch(u.width - 1);
    const Row<Rule::kSlots, T> row(u, u.rows[i]);
    update_row(rule, row, u.width, u.gradient_of(i));
  }
}

template <class Rule, class T>
void for_rows(const Rule& rule, const Update<T>& u) {
  constexpr std::uint64_t kLine = kLineBytes / sizeof(T);
  if (u.rows == nullptr) return consecutive_rows(rule, u);
  // Common widths have loops of their own (docs/performance.md#near-and-distant-cores).
  if (u.width == kLine) return scattered_rows<kLine>(rule, u);
  if (u.width == 2 * kLine) return scattered_rows<2 * kLine>(rule, u);
  if (u.width == 4 * kLine) return scattered_rows<4 * kLine>(rule, u);
  scattered_rows<0>(rule, u);
}

}  // namespace capstan::ps::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
