// shard_snapshot.hpp -- the rows of a shard as they were at one moment, while pushes go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace capstan::store {

/// Copy on write, a row at a time: a row that is about to change, and has not been copied out yet, is kept as
/// it is first. A push so costs at most one more copy of the rows that it changes, and memory at most the
/// shard once more. Under the store's mutex.
class ShardSnapshot {
 public:
  /// Values or a slot.
  struct Array {
    const std::byte* data = nullptr;
    std::uint64_t row_bytes = 0;
  };

  ShardSnapshot(std::vector<Array> arrays, std::uint64_t rows);

  /// Before these rows change. REQUIRES: row numbers within the shard.
  void preserve(std::span<const std::uint32_t> rows);
  void preserve(std::uint64_t first, std::uint64_t count);
  /// Before the arrays' memory goes.
  void preserve_all();

  /// Rows [first, first + count) of an array as they were. REQUIRES: of each array the first ones first, each
  /// row once.
  void copy(std::size_t array, std::uint64_t first, std::uint64_t count, std::byte* out);

 private:
  /// Rows of one array that are kept, of kPieceRows consecutive ones.
  struct Piece {
    std::vector<std::uint64_t> rows;
    std::vector<std::byte> bytes;
  };
  struct Copying {
    Array array;
    std::uint64_t copied = 0;  // rows before this one have been
    std::vector<Piece> kept;
  };

  void preserve(std::uint64_t row);

  std::uint64_t rows_;
  std::vector<Copying> arrays_;
  std::vector<std::uint64_t> seen_;  // a bit for each row that has changed, or will
  bool detached_ = false;            // everything that was left is kept
};

}  // namespace capstan::store
