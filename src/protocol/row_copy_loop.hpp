// row_copy_loop.hpp -- loops that copy scattered rows, compiled by Highway for every vector width.
#if defined(CAPSTAN_PROTOCOL_ROW_COPY_LOOP_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef CAPSTAN_PROTOCOL_ROW_COPY_LOOP_HPP
#undef CAPSTAN_PROTOCOL_ROW_COPY_LOOP_HPP
#else
#define CAPSTAN_PROTOCOL_ROW_COPY_LOOP_HPP
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace capstan::protocol::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::uint64_t kLine = 64;

#ifdef __SANITIZE_THREAD__
/// A relaxed read may race with a writer by design, so this loop is invisible to ThreadSanitizer, which
/// would intercept memcpy.
template <std::uint64_t kRowBytes>
__attribute__((no_sanitize("thread"), noinline)) void copy_row(const std::byte* from, std::uint64_t bytes,
                                                               std::byte* to) {
  for (std::uint64_t i = 0; i < bytes; ++i) to[i] = static_cast<const volatile std::byte*>(from)[i];
}
#else
template <std::uint64_t kRowBytes>
HWY_INLINE void copy_row(const std::byte* from, std::uint64_t bytes, std::byte* to) {
  if constexpr (kRowBytes == 0) {
    std::memcpy(to, from, bytes);
  } else {
    const hn::CappedTag<std::uint8_t, kRowBytes> d;
    for (std::uint64_t at = 0; at < kRowBytes; at += hn::Lanes(d)) {
      hn::StoreU(hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(from) + at), d,
                 reinterpret_cast<std::uint8_t*>(to) + at);
    }
  }
}
#endif

template <std::uint64_t kRowBytes, class Source, class Target>
HWY_INLINE void copy_rows_of(std::uint64_t rows, std::uint64_t any_row_bytes, const Source& source,
                             const Target& target) {
  const std::uint64_t bytes = kRowBytes != 0 ? kRowBytes : any_row_bytes;
  // Covers the latency of a memory access, without exceeding a core's miss buffers and its L1 cache
  // (measured, docs/performance.md). Longer rows are streams, which the hardware prefetches.
  constexpr std::uint64_t kBytesAhead = 4096;
  const std::uint64_t ahead =
      std::clamp<std::uint64_t>(kBytesAhead / std::max<std::uint64_t>(bytes, 1), 4, 32);
  const std::uint64_t lines = std::min<std::uint64_t>(bytes, kBytesAhead / 4);
  // The prefetch loops are not a function: GCC considers a function that only prefetches free of side
  // effects and removes the calls.
  for (std::uint64_t i = 0; i < std::min(ahead, rows); ++i) {
    const std::byte* row = source(i);
    for (std::uint64_t at = 0; at < lines; at += kLine) hwy::Prefetch(row + at);
  }
  std::uint64_t i = 0;
  for (; i + ahead < rows; ++i) {
    const std::byte* row = source(i + ahead);
    for (std::uint64_t at = 0; at < lines; at += kLine) hwy::Prefetch(row + at);
    copy_row<kRowBytes>(source(i), bytes, target(i));
  }
  for (; i < rows; ++i) copy_row<kRowBytes>(source(i), bytes, target(i));
}

/// Copies row i from the address source(i) to target(i). The usual widths are constants, so that copies
/// compile to a few vector moves.
template <class Source, class Target>
HWY_INLINE void copy_rows(std::uint64_t rows, std::uint64_t row_bytes, const Source& source,
                          const Target& target) {
  switch (row_bytes) {
    case 64:
      return copy_rows_of<64>(rows, row_bytes, source, target);
    case 128:
      return copy_rows_of<128>(rows, row_bytes, source, target);
    case 256:
      return copy_rows_of<256>(rows, row_bytes, source, target);
    case 512:
      return copy_rows_of<512>(rows, row_bytes, source, target);
    case 1024:
      return copy_rows_of<1024>(rows, row_bytes, source, target);
    default:
      return copy_rows_of<0>(rows, row_bytes, source, target);
  }
}

}  // namespace capstan::protocol::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
