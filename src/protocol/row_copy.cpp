// row_copy.cpp -- gather loops, compiled by Highway for every vector width of the architecture. The widest
// one that the CPU supports is selected at run time.
#include "protocol/row_copy.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "protocol/row_copy.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

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
    for (std::uint64_t at = 0; at < lines; at += kLine) hwy::Prefetch(source(i) + at);
  }
  std::uint64_t i = 0;
  for (; i + ahead < rows; ++i) {
    const std::byte* upcoming = source(i + ahead);
    for (std::uint64_t at = 0; at < lines; at += kLine) hwy::Prefetch(upcoming + at);
    copy_row<kRowBytes>(source(i), bytes, target(i));
  }
  for (; i < rows; ++i) copy_row<kRowBytes>(source(i), bytes, target(i));
}

/// Copies row source(i) to target(i) (pointers). The usual widths are constants, so that copies compile to
/// a few vector moves.
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

void gather_table(const std::byte* table, std::uint64_t row_bytes, const std::int64_t* ids,
                  std::uint64_t count, std::byte* out) {
  copy_rows(
      count, row_bytes,
      [=](std::uint64_t i) { return table + static_cast<std::uint64_t>(ids[i]) * row_bytes; },
      [=](std::uint64_t i) { return out + i * row_bytes; });
}

void gather_shards(const DivPartition& partition, const std::uintptr_t* origins, std::uint64_t row_bytes,
                   const std::int64_t* ids, std::uint64_t count, std::byte* out) {
  copy_rows(
      count, row_bytes,
      [=](std::uint64_t i) {
        const auto id = static_cast<std::uint64_t>(ids[i]);
        return reinterpret_cast<const std::byte*>(origins[partition.shard_of(id)] + id * row_bytes);
      },
      [=](std::uint64_t i) { return out + i * row_bytes; });
}

void gather_numbers(const std::byte* table, std::uint64_t row_bytes, const std::uint32_t* rows,
                    const std::uint32_t* order, std::uint64_t count, std::byte* out) {
  const auto source = [=](std::uint64_t i) { return table + rows[i] * row_bytes; };
  if (order == nullptr) {
    copy_rows(count, row_bytes, source, [=](std::uint64_t i) { return out + i * row_bytes; });
  } else {
    copy_rows(count, row_bytes, source, [=](std::uint64_t i) { return out + order[i] * row_bytes; });
  }
}

/// Writes complete cache lines by non-temporal stores, and the rest by memcpy. REQUIRES: `to` is aligned to
/// 64 bytes.
HWY_INLINE void stream_lines(const std::byte* from, std::uint64_t bytes, std::byte* to) {
  const hn::CappedTag<std::uint8_t, kLine> d;
  std::uint64_t at = 0;
  for (; at + hn::Lanes(d) <= bytes; at += hn::Lanes(d)) {
    hn::Stream(hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(from) + at), d,
               reinterpret_cast<std::uint8_t*>(to) + at);
  }
  if (at < bytes) std::memcpy(to + at, from + at, bytes - at);
}

/// Copies of at least this size exceed a core's private caches; bypassing the caches takes two thirds of
/// the time (docs/performance.md).
constexpr std::uint64_t kLongCopy = 1 << 20;

void copy_stream(const std::byte* from, std::uint64_t bytes, std::byte* to) {
#ifndef __SANITIZE_THREAD__
  if (bytes >= kLongCopy) {
    const std::uint64_t to_a_line = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
    std::memcpy(to, from, to_a_line);
    constexpr std::uint64_t kStep = 4 * kLine;
    constexpr std::uint64_t kBytesAhead = 2048;  // the hardware prefetcher stops at page boundaries
    std::uint64_t at = to_a_line;
    for (; at + kStep <= bytes; at += kStep) {
      for (std::uint64_t line = 0; line < kStep; line += kLine) hwy::Prefetch(from + at + kBytesAhead + line);
      stream_lines(from + at, kStep, to + at);
    }
    stream_lines(from + at, bytes - at, to + at);
    hwy::FlushStream();
    return;
  }
#endif
  copy_row<0>(from, bytes, to);
}

}  // namespace capstan::protocol::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::protocol {

HWY_EXPORT(gather_table);
HWY_EXPORT(gather_shards);
HWY_EXPORT(gather_numbers);
HWY_EXPORT(copy_stream);

void gather_ids(const std::byte* table, std::uint64_t row_bytes, std::span<const std::int64_t> ids,
                std::byte* out) {
  HWY_DYNAMIC_DISPATCH(gather_table)(table, row_bytes, ids.data(), ids.size(), out);
}

void gather_ids(const DivPartition& partition, const std::uintptr_t* origins, std::uint64_t row_bytes,
                std::span<const std::int64_t> ids, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(gather_shards)(partition, origins, row_bytes, ids.data(), ids.size(), out);
}

void gather_rows(const std::byte* table, std::uint64_t row_bytes, std::span<const std::uint32_t> rows,
                 std::span<const std::uint32_t> order, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(gather_numbers)
  (table, row_bytes, rows.data(), order.empty() ? nullptr : order.data(), rows.size(), out);
}

void copy_bytes(const std::byte* from, std::uint64_t bytes, std::byte* to) {
  if (bytes != 0) HWY_DYNAMIC_DISPATCH(copy_stream)(from, bytes, to);
}

}  // namespace capstan::protocol
#endif
