// row_copy.cpp -- loops over rows, compiled by Highway for every vector width of the architecture. The widest
// one that the CPU supports is selected at run time.
#include "protocol/row_copy.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "protocol/row_copy.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "protocol/row_copy_loop.hpp"

HWY_BEFORE_NAMESPACE();
namespace capstan::protocol::HWY_NAMESPACE {

void gather_table(const std::byte* table, std::uint64_t row_bytes, const std::int64_t* ids,
                  std::uint64_t count, std::byte* out) {
  const auto source = [=](std::uint64_t i) { return table + static_cast<std::uint64_t>(ids[i]) * row_bytes; };
  copy_rows(count, row_bytes, source, [=](std::uint64_t i) { return out + i * row_bytes; });
}

void gather_shards(const DivPartition& partition, const std::uintptr_t* origins, std::uint64_t row_bytes,
                   const std::int64_t* ids, std::uint64_t count, std::byte* out) {
  const auto source = [=](std::uint64_t i) {
    const auto id = static_cast<std::uint64_t>(ids[i]);
    return reinterpret_cast<const std::byte*>(origins[partition.shard_of(id)] + id * row_bytes);
  };
  copy_rows(count, row_bytes, source, [=](std::uint64_t i) { return out + i * row_bytes; });
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

#ifdef __SANITIZE_THREAD__
void stream_all(const std::byte* from, std::uint64_t row_bytes, const std::uint32_t* order,
                std::uint64_t count, std::byte* to) {
  for (std::uint64_t i = 0; i < count; ++i)
    std::memcpy(to + i * row_bytes, from + (order == nullptr ? i : order[i]) * row_bytes, row_bytes);
}
#else
/// Rows that do not end at line boundaries are joined in a buffer in the caches first.
void stream_ragged(const std::byte* from, std::uint64_t row_bytes, const std::uint32_t* order,
                   std::uint64_t count, std::byte* to) {
  alignas(kLine) std::byte lines[64 * kLine];
  std::uint64_t used = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::byte* row = from + order[i] * row_bytes;
    for (std::uint64_t left = row_bytes; left != 0;) {
      const std::uint64_t part = std::min(left, sizeof lines - used);
      std::memcpy(lines + used, row, part);
      row += part;
      left -= part;
      used += part;
      if (used != sizeof lines) continue;
      stream_lines(lines, used, to);
      to += used;
      used = 0;
    }
  }
  stream_lines(lines, used, to);
}

void stream_all(const std::byte* from, std::uint64_t row_bytes, const std::uint32_t* order,
                std::uint64_t count, std::byte* to) {
  if (order == nullptr) {
    stream_lines(from, count * row_bytes, to);
  } else if (row_bytes % kLine != 0) {
    stream_ragged(from, row_bytes, order, count, to);
  } else {
    for (std::uint64_t i = 0; i < count; ++i)
      stream_lines(from + order[i] * row_bytes, row_bytes, to + i * row_bytes);
  }
  hwy::FlushStream();
}
#endif

}  // namespace capstan::protocol::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace capstan::protocol {

HWY_EXPORT(gather_table);
HWY_EXPORT(gather_shards);
HWY_EXPORT(gather_numbers);
HWY_EXPORT(copy_stream);
HWY_EXPORT(stream_all);

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

void stream_rows(const std::byte* from, std::uint64_t row_bytes, std::span<const std::uint32_t> order,
                 std::uint64_t count, std::byte* to) {
  HWY_DYNAMIC_DISPATCH(stream_all)(from, row_bytes, order.empty() ? nullptr : order.data(), count, to);
}

}  // namespace capstan::protocol
#endif
