// shard_snapshot.hpp -- the rows of a shard as they were at one moment, while pushes go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "capstan/error.hpp"
#include "ps/shard/chunk_pool.hpp"
#include "ps/shard/frozen_rows.hpp"
#include "ps/shard/touched_rows.hpp"

namespace capstan::ps {

/// Copy on write, a row at a time: a row that is about to change, and has not been copied out yet, is kept as
/// it is first. A push so costs at most one more copy of the rows that it changes, and memory at most the
/// shard once more; when that is not to be had the snapshot is lost, not the push. Under the store's mutex,
/// but for `copy`, which rows go on changing beside.
class ShardSnapshot final : public FrozenRows {
 public:
  /// Values or a slot.
  struct Array {
    const std::byte* data = nullptr;
    std::uint64_t row_bytes = 0;
  };

  /// Of the rows that have been touched, or of all. Memory for those that change comes from `pool`.
  ShardSnapshot(std::span<const Array> arrays, std::uint64_t rows,
                std::optional<TouchedRows> touched = std::nullopt,
                std::shared_ptr<ChunkPool> pool = std::make_shared<ChunkPool>());
  ~ShardSnapshot() override;
  ShardSnapshot(const ShardSnapshot&) = delete;
  ShardSnapshot& operator=(const ShardSnapshot&) = delete;

  void list_rows() override;

  std::size_t arrays() const noexcept override { return arrays_.size(); }
  std::uint64_t rows() const noexcept override { return listed_ ? listed_->size() : rows_; }
  std::uint64_t row(std::uint64_t i) const noexcept override { return listed_ ? (*listed_)[i] : i; }

  /// Before these rows change. REQUIRES: row numbers within the shard.
  void preserve(std::span<const std::uint32_t> rows);
  void preserve(std::uint64_t first, std::uint64_t count);
  /// Before the arrays' memory goes.
  void preserve_all();

  /// Takes the store's mutex for no longer than it looks up what is kept. Throws Error(resource_exhausted)
  /// when there was no room for rows that have changed.
  void copy(std::size_t array, std::uint64_t first, std::uint64_t count, std::byte* out,
            std::mutex& store_mutex) override;

 private:
  struct Copying {
    Array array;
    std::uint64_t at = 0;      // within a kept row
    std::uint64_t copied = 0;  // rows before this one have been
  };
  /// In the order in which they changed.
  struct Kept {
    std::uint32_t row;
    std::uint32_t number;  // among all, from 1 on
  };
  static constexpr std::uint64_t kRowsTogether = 4096;
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };

  /// Nothing has to be kept any more, or can be.
  bool rests() const noexcept { return detached_ || lost_ || kept_bytes_ == 0; }
  bool is_kept(std::uint64_t row) const noexcept { return (is_kept_[row / 64] >> row % 64 & 1) != 0; }
  bool wants(std::uint64_t row) const noexcept {
    return !is_kept(row) && row >= arrays_.back().copied && (!touched_ || touched_->has(row));
  }
  void keep(std::uint64_t row);
  void give_chunks_back();
  std::byte* place_of(std::uint32_t number) const noexcept;
  struct Found {
    std::uint64_t row;
    const std::byte* bytes;
  };
  /// Which of these rows are kept, into `were_kept_`.
  void look(std::uint64_t first, std::uint64_t count);
  /// Rows [begin, end) that are kept, into `found_`.
  void find_kept(std::uint64_t begin, std::uint64_t end);
  /// Rows as they are, some of which may be changing; none that were_kept_ says is kept.
  void copy_live(const Copying& of, std::uint64_t first, std::uint64_t count, std::byte* out);
  /// Those of found_.
  void copy_kept(const Copying& of, std::uint64_t first, std::uint64_t count, std::byte* out) const;

  std::uint64_t rows_;                                // of the shard
  std::optional<TouchedRows> touched_;                // those that there are; or all
  std::optional<std::vector<std::uint32_t>> listed_;  // the same
  std::vector<Copying> arrays_;
  std::uint64_t kept_bytes_ = 0;  // of a kept row: its part of every array
  std::uint64_t rows_a_chunk_;
  std::size_t chunk_bytes_;
  // A bit a row, and lists of those that are kept, by neighbourhood: what is looked up at random is small, as
  // new pages come slowly and a save wants them at once.
  std::unique_ptr<std::uint64_t[], Free> is_kept_;
  std::vector<std::vector<Kept>> kept_rows_;
  std::uint32_t kept_ = 0;
  std::shared_ptr<ChunkPool> pool_;
  std::vector<ChunkPool::Chunk> chunks_;  // of kept rows, in the order of their numbers
  std::optional<Error> lost_;             // why rows that have changed are not among those kept
  // Held while something is copied: neither the arrays' memory nor a chunk goes then. Taken after the store's
  // mutex by who has both.
  std::mutex memory_;
  bool detached_ = false;  // everything that was left is kept; changes under both
  // The copying thread's.
  std::vector<std::uint64_t> were_kept_;  // of rows [looked_from_, looked_to_), a bit each
  std::uint64_t looked_from_ = 0;         // a multiple of 64
  std::uint64_t looked_to_ = 0;
  std::vector<Found> found_;
};

}  // namespace capstan::ps
