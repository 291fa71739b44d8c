// shard_snapshot.cpp -- preserves rows before they change, and merges them into copies of the arrays.
#include "ps/shard/shard_snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "protocol/row_copy.hpp"

namespace capstan::ps {
namespace {

constexpr std::uint64_t kCacheLine = 64;
/// Prefetch distance for scattered rows, in rows.
constexpr std::size_t kAhead = 16;
/// Maximum bytes of a single copy. A longer one would bypass the cache, but the checksum is computed next.
constexpr std::uint64_t kCachedCopy = std::uint64_t{256} << 10;

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
    arrays_.push_back({array, preserved_bytes_});
    preserved_bytes_ += array.row_bytes;
  }
  constexpr std::uint64_t kChunk = ChunkPool::kBytes;
  rows_per_chunk_ = std::max<std::uint64_t>(1, kChunk / std::max<std::uint64_t>(1, preserved_bytes_));
  chunk_bytes_ = (rows_per_chunk_ * preserved_bytes_ + kChunk - 1) / kChunk * kChunk;
  // calloc allocates zeroed pages only on first use.
  const std::size_t words = rows / 64 + 1;
  is_preserved_.reset(checked(static_cast<std::uint64_t*>(std::calloc(words, sizeof(std::uint64_t)))));
  preserved_rows_.resize(rows / kNeighborhood + 1);
}

void ShardSnapshot::list_rows() {
  if (touched_) listed_ = touched_->list();
}

std::byte* ShardSnapshot::address_of(std::uint32_t number) const noexcept {
  const std::uint64_t at = number - 1;
  return chunks_[at / rows_per_chunk_].get() + at % rows_per_chunk_ * preserved_bytes_;
}

ShardSnapshot::~ShardSnapshot() { return_chunks(); }

void ShardSnapshot::return_chunks() { pool_->give_back(std::exchange(chunks_, {}), chunk_bytes_); }

void ShardSnapshot::preserve_row(std::uint64_t row) {
  try {
    if (preserved_ % rows_per_chunk_ == 0) chunks_.push_back(pool_->take(chunk_bytes_));
    preserved_rows_[row / kNeighborhood].push_back({static_cast<std::uint32_t>(row), preserved_ + 1});
  } catch (const std::exception& error) {
    const std::lock_guard lock(memory_);
    return_chunks();
    lost_.emplace(
        Code::resource_exhausted,
        fmt::format("cannot preserve rows that change during a save: {}; leave memory free, up to the size "
                    "of the shards, or save while nothing is pushed",
                    error.what()));
    return;
  }
  is_preserved_[row / 64] |= std::uint64_t{1} << row % 64;
  std::byte* location = address_of(++preserved_);
  for (const Copying& of : arrays_)
    std::memcpy(location + of.at, of.array.data + row * of.array.row_bytes, of.array.row_bytes);
}

void ShardSnapshot::preserve(std::span<const std::uint32_t> rows) {
  if (is_idle()) return;
  const auto fetch_bit = [&](std::size_t i) {
    if (i < rows.size() && rows[i] < rows_) __builtin_prefetch(&is_preserved_[rows[i] / 64], 1);
  };
  const auto fetch_row = [&](std::size_t i) {
    if (i >= rows.size() || !must_preserve(rows[i])) return;
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
    if (must_preserve(rows[i])) preserve_row(rows[i]);
    if (lost_) return;
  }
}

void ShardSnapshot::preserve(std::uint64_t first, std::uint64_t count) {
  if (is_idle()) return;
  for (std::uint64_t row = first; row < first + count && !lost_; ++row) {
    if (must_preserve(row)) preserve_row(row);
  }
}

void ShardSnapshot::preserve_all() {
  preserve(0, rows_);
  const std::lock_guard lock(memory_);
  detached_ = true;
}

void ShardSnapshot::copy(std::size_t array, std::uint64_t first, std::uint64_t count, std::byte* out,
                         std::mutex& store_mutex) {
  Copying& of = arrays_.at(array);
  const bool any = count != 0 && of.array.row_bytes != 0;
  std::unique_lock lock(store_mutex, std::defer_lock);
  if (any) {
    if (!listed_ && (first < bits_from_ || first + count > bits_to_)) {
      lock.lock();
      read_bits(first, count);
      lock.unlock();
    }
    copy_live(of, first, count, out);
  }
  lock.lock();
  if (lost_) throw *lost_;
  of.copied = first + count == rows() ? rows_ : row(first + count);
  if (!any) return;
  // A row that changed during the copy was preserved before it changed.
  find_preserved(row(first), row(first + count - 1) + 1);
  // Read ahead for the next call, so that it locks the store's mutex once: pushes hold it most of the time.
  if (!listed_) read_bits(first + count, std::min(count, rows_ - first - count));
  const std::lock_guard chunks_stay(memory_);
  lock.unlock();
  copy_preserved(of, first, count, out);
}

void ShardSnapshot::read_bits(std::uint64_t first, std::uint64_t count) {
  bits_from_ = first / 64 * 64;
  bits_to_ = first + count;
  were_preserved_.assign(&is_preserved_[first / 64],
                         &is_preserved_[first / 64] + (bits_to_ - bits_from_ + 63) / 64);
}

void ShardSnapshot::copy_live(const Copying& of, std::uint64_t first, std::uint64_t count, std::byte* out) {
  const std::uint64_t row_bytes = of.array.row_bytes;
  const std::lock_guard data_stays(memory_);
  if (detached_) return;
  if (listed_) return protocol::gather_rows(of.array.data, row_bytes, {&(*listed_)[first], count}, {}, out);
  const std::uint64_t end = first + count;
  const auto was_preserved = [&](std::uint64_t row) {
    return (were_preserved_[(row - bits_from_) / 64] >> row % 64 & 1) != 0;
  };
  for (std::uint64_t row = first; row < end;) {
    if (was_preserved(row)) {
      ++row;
      continue;
    }
    const std::uint64_t begin = row;
    do {
      ++row;
    } while (row < end && !was_preserved(row) && (row - begin) * row_bytes < kCachedCopy);
    protocol::copy_bytes(of.array.data + begin * row_bytes, (row - begin) * row_bytes,
                         out + (begin - first) * row_bytes);
  }
}

void ShardSnapshot::find_preserved(std::uint64_t begin, std::uint64_t end) {
  found_.clear();
  for (std::uint64_t neighborhood = begin / kNeighborhood; neighborhood * kNeighborhood < end;
       ++neighborhood) {
    for (const Preserved& preserved : preserved_rows_[neighborhood]) {
      if (preserved.row >= begin && preserved.row < end)
        found_.push_back({preserved.row, address_of(preserved.number)});
    }
  }
}

void ShardSnapshot::copy_preserved(const Copying& of, std::uint64_t first, std::uint64_t count,
                                   std::byte* out) const {
  const std::uint64_t row_bytes = of.array.row_bytes;
  const auto position_of = [&](std::uint64_t row) {
    if (!listed_) return row - first;
    const auto begin = listed_->begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = begin + static_cast<std::ptrdiff_t>(count);
    return static_cast<std::uint64_t>(std::lower_bound(begin, end, row) - begin);  // always found
  };
  const std::uint64_t fetched = std::min<std::uint64_t>(row_bytes, 16 * kCacheLine);
  for (std::size_t i = 0; i < found_.size(); ++i) {
    if (i + kAhead < found_.size()) {
      const std::byte* next = found_[i + kAhead].bytes + of.at;
      for (std::uint64_t at = 0; at < fetched; at += kCacheLine) __builtin_prefetch(next + at);
    }
    std::memcpy(out + position_of(found_[i].row) * row_bytes, found_[i].bytes + of.at, row_bytes);
  }
}

}  // namespace capstan::ps
