// shard_snapshot.cpp -- keeping rows, and putting them in place of what has come since.
#include "store/shard_snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

namespace capstan::store {
namespace {

constexpr std::uint64_t kCacheLine = 64;
/// Rows of which the next ones are fetched while the last ones are copied: they lie anywhere.
constexpr std::size_t kAhead = 16;

template <class T>
T* checked(T* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

ShardSnapshot::ShardSnapshot(std::span<const Array> arrays, std::uint64_t rows,
                             std::optional<TouchedRows> touched, std::shared_ptr<ChunkPool> pool)
    : rows_(rows), touched_(std::move(touched)), pool_(std::move(pool)) {
  for (const Array& array : arrays) {
    arrays_.push_back({array, kept_bytes_});
    kept_bytes_ += array.row_bytes;
  }
  constexpr std::uint64_t kChunk = ChunkPool::kBytes;
  rows_a_chunk_ = std::max<std::uint64_t>(1, kChunk / std::max<std::uint64_t>(1, kept_bytes_));
  chunk_bytes_ = (rows_a_chunk_ * kept_bytes_ + kChunk - 1) / kChunk * kChunk;
  // Zeros that cost nothing before they are needed.
  const std::size_t words = rows / 64 + 1;
  is_kept_.reset(checked(static_cast<std::uint64_t*>(std::calloc(words, sizeof(std::uint64_t)))));
  kept_rows_.resize(rows / kRowsTogether + 1);
}

void ShardSnapshot::list_rows() {
  if (touched_) listed_ = touched_->list();
}

std::byte* ShardSnapshot::place_of(std::uint32_t number) const noexcept {
  const std::uint64_t at = number - 1;
  return chunks_[at / rows_a_chunk_].get() + at % rows_a_chunk_ * kept_bytes_;
}

ShardSnapshot::~ShardSnapshot() { give_chunks_back(); }

void ShardSnapshot::give_chunks_back() { pool_->give_back(std::exchange(chunks_, {}), chunk_bytes_); }

void ShardSnapshot::keep(std::uint64_t row) {
  try {
    if (kept_ % rows_a_chunk_ == 0) chunks_.push_back(pool_->take(chunk_bytes_));
    kept_rows_[row / kRowsTogether].push_back({static_cast<std::uint32_t>(row), kept_ + 1});
  } catch (const std::exception& error) {
    give_chunks_back();
    lost_.emplace(
        Code::resource_exhausted,
        fmt::format("no room for rows that were pushed to while a checkpoint was saved: {}; leave "
                    "memory free for them, at most as much as the shards take, or save when nothing "
                    "is pushed",
                    error.what()));
    return;
  }
  is_kept_[row / 64] |= std::uint64_t{1} << row % 64;
  std::byte* place = place_of(++kept_);
  for (const Copying& of : arrays_)
    std::memcpy(place + of.at, of.array.data + row * of.array.row_bytes, of.array.row_bytes);
}

template <class Take>
void ShardSnapshot::each_kept(std::uint64_t begin, std::uint64_t end, const Take& take) const {
  for (std::uint64_t together = begin / kRowsTogether; together * kRowsTogether < end; ++together) {
    for (const Kept& kept : kept_rows_[together]) {
      if (kept.row >= begin && kept.row < end) take(kept.row, place_of(kept.number));
    }
  }
}

void ShardSnapshot::preserve(std::span<const std::uint32_t> rows) {
  if (rests()) return;
  const auto fetch_bit = [&](std::size_t i) {
    if (i < rows.size()) __builtin_prefetch(&is_kept_[rows[i] / 64], 1);
  };
  const auto fetch_row = [&](std::size_t i) {
    if (i >= rows.size() || !wants(rows[i])) return;
    for (const Copying& of : arrays_) {
      const std::byte* data = of.array.data + rows[i] * of.array.row_bytes;
      for (std::uint64_t at = 0; at < of.array.row_bytes; at += kCacheLine) __builtin_prefetch(data + at);
    }
  };
  for (std::size_t i = 0; i < 2 * kAhead; ++i) fetch_bit(i);
  for (std::size_t i = 0; i < kAhead; ++i) fetch_row(i);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    fetch_bit(i + 2 * kAhead);
    fetch_row(i + kAhead);
    if (wants(rows[i])) keep(rows[i]);
    if (lost_) return;
  }
}

void ShardSnapshot::preserve(std::uint64_t first, std::uint64_t count) {
  if (rests()) return;
  for (std::uint64_t row = first; row < first + count && !lost_; ++row) {
    if (wants(row)) keep(row);
  }
}

void ShardSnapshot::preserve_all() {
  preserve(0, rows_);
  detached_ = true;
}

void ShardSnapshot::copy(std::size_t array, std::uint64_t first, std::uint64_t count, std::byte* out) {
  if (lost_) throw *lost_;
  Copying& of = arrays_.at(array);
  of.copied = first + count == rows() ? rows_ : row(first + count);
  const std::uint64_t row_bytes = of.array.row_bytes;
  if (count == 0 || row_bytes == 0) return;
  if (listed_) return copy_listed(of, first, count, out);
  if (!detached_) std::memcpy(out, of.array.data + first * row_bytes, count * row_bytes);
  each_kept(first, first + count, [&](std::uint64_t row, const std::byte* kept) {
    std::memcpy(out + (row - first) * row_bytes, kept + of.at, row_bytes);
  });
}

void ShardSnapshot::copy_listed(const Copying& of, std::uint64_t first, std::uint64_t count,
                                std::byte* out) const {
  const std::uint64_t row_bytes = of.array.row_bytes;
  const auto begin = listed_->begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  if (!detached_) {
    for (std::uint64_t i = 0; i < count; ++i)
      std::memcpy(out + i * row_bytes, of.array.data + begin[static_cast<std::ptrdiff_t>(i)] * row_bytes,
                  row_bytes);
  }
  each_kept(*begin, *(end - 1) + std::uint64_t{1}, [&](std::uint64_t row, const std::byte* kept) {
    const auto place = std::lower_bound(begin, end, row) - begin;  // every row that is kept is listed
    std::memcpy(out + static_cast<std::uint64_t>(place) * row_bytes, kept + of.at, row_bytes);
  });
}

}  // namespace capstan::store
