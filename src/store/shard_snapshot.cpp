// shard_snapshot.cpp -- keeping rows, and putting them in place of what has come since.
#include "store/shard_snapshot.hpp"

#include <algorithm>
#include <cstring>

namespace capstan::store {
namespace {

/// What is kept of so many rows is freed together.
constexpr std::uint64_t kPieceRows = 1024;

}  // namespace

ShardSnapshot::ShardSnapshot(std::vector<Array> arrays, std::uint64_t rows)
    : rows_(rows), seen_((rows + 63) / 64) {
  for (const Array& array : arrays)
    arrays_.push_back({array, 0, std::vector<Piece>((rows + kPieceRows - 1) / kPieceRows)});
}

void ShardSnapshot::preserve(std::uint64_t row) {
  std::uint64_t& word = seen_[row / 64];
  const std::uint64_t bit = std::uint64_t{1} << (row % 64);
  if ((word & bit) != 0) return;
  word |= bit;
  for (Copying& of : arrays_) {
    if (row < of.copied) continue;
    Piece& piece = of.kept[row / kPieceRows];
    const std::byte* from = of.array.data + row * of.array.row_bytes;
    piece.rows.push_back(row);
    piece.bytes.insert(piece.bytes.end(), from, from + of.array.row_bytes);
  }
}

void ShardSnapshot::preserve(std::span<const std::uint32_t> rows) {
  if (detached_) return;
  for (const std::uint32_t row : rows) preserve(std::uint64_t{row});
}

void ShardSnapshot::preserve(std::uint64_t first, std::uint64_t count) {
  if (detached_) return;
  for (std::uint64_t row = first; row < first + count; ++row) preserve(row);
}

void ShardSnapshot::preserve_all() {
  preserve(0, rows_);
  detached_ = true;
}

void ShardSnapshot::copy(std::size_t array, std::uint64_t first, std::uint64_t count, std::byte* out) {
  Copying& of = arrays_.at(array);
  const std::uint64_t row_bytes = of.array.row_bytes;
  if (count > 0 && row_bytes > 0 && !detached_)
    std::memcpy(out, of.array.data + first * row_bytes, count * row_bytes);
  const std::uint64_t end = first + count;
  for (std::uint64_t number = first / kPieceRows; number * kPieceRows < end; ++number) {
    Piece& piece = of.kept[number];
    for (std::size_t i = 0; i < piece.rows.size(); ++i) {
      const std::uint64_t row = piece.rows[i];
      if (row < first || row >= end || row_bytes == 0) continue;
      std::memcpy(out + (row - first) * row_bytes, piece.bytes.data() + i * row_bytes, row_bytes);
    }
    if ((number + 1) * kPieceRows <= end) piece = {};
  }
  of.copied = end;
}

}  // namespace capstan::store
