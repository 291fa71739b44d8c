// row_copy.hpp -- moving rows that lie anywhere, at the rate at which memory delivers cache lines.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "shard/push_format.hpp"

namespace capstan::shard {

/// Elements of mapped rows may change while they are read (relaxed reads), which is not for a race detector.
#ifdef __SANITIZE_THREAD__
__attribute__((no_sanitize("thread"))) inline void copy_row(const std::byte* from, std::uint64_t bytes,
                                                            std::byte* to) {
  // It would see through to memcpy.
  for (std::uint64_t i = 0; i < bytes; ++i) to[i] = static_cast<const volatile std::byte*>(from)[i];
}
#else
inline void copy_row(const std::byte* from, std::uint64_t bytes, std::byte* to) {
  std::memcpy(to, from, bytes);
}
#endif

/// Bytes of coming rows that are on their way while one is copied: enough to cover a memory access at these
/// rates, few enough for a core's miss buffers (some 24 lines; measured, docs/performance.md).
inline constexpr std::uint64_t kPrefetchBytes = 2048;

template <std::uint64_t kRowBytes, class Source, class Target>
void copy_rows_of(std::uint64_t rows, std::uint64_t row_bytes, const Source& source, const Target& target) {
  const std::uint64_t bytes = kRowBytes != 0 ? kRowBytes : row_bytes;
  const std::uint64_t ahead =
      std::clamp<std::uint64_t>(kPrefetchBytes / std::max<std::uint64_t>(bytes, 1), 2, 32);
  // A row far longer than what is prefetched is a stream that the hardware follows by itself.
  const std::uint64_t lines = std::min<std::uint64_t>(bytes, kPrefetchBytes);
  const auto prefetch = [&](std::uint64_t i) {
    const std::byte* row = source(i);
    for (std::uint64_t at = 0; at < lines; at += kCacheLine) __builtin_prefetch(row + at);
  };
  for (std::uint64_t i = 0; i < std::min(ahead, rows); ++i) prefetch(i);
  std::uint64_t i = 0;
  for (; i + ahead < rows; ++i) {
    prefetch(i + ahead);
    copy_row(source(i), bytes, target(i));
  }
  for (; i < rows; ++i) copy_row(source(i), bytes, target(i));
}

/// Copies row source(i) to target(i) for each i below `rows`; both return pointers.
template <class Source, class Target>
void copy_rows(std::uint64_t rows, std::uint64_t row_bytes, const Source& source, const Target& target) {
  switch (row_bytes) {  // the usual widths as constants: their copies become a few vector moves
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

}  // namespace capstan::shard
