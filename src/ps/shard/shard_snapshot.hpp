// shard_snapshot.hpp -- snapshot of the rows of a shard in host memory, while pushes continue.
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

/// Copy-on-write by row: a row that has not been copied out is preserved before it changes. So a push copies
/// each row at most once more, and memory at most doubles. If memory is exhausted, the snapshot fails, not
/// the push. Calls require the store's mutex, except `list_rows` and `copy`, during which rows may change.
class ShardSnapshot final : public FrozenRows {
 public:
  /// Memory of the values or of a slot, owned by the shard.
  struct Array {
    const std::byte* data = nullptr;
    std::uint64_t row_bytes = 0;
  };

  /// Takes a snapshot of the touched rows, or of all. Preserved rows are stored in chunks of `pool`. Throws
  /// std::bad_alloc.
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

  /// Preserves rows that are about to change; ignores rows that are not in the snapshot.
  void preserve(std::span<const std::uint32_t> rows);
  void preserve(std::uint64_t first, std::uint64_t count);
  /// Preserves all rows, before the memory of the arrays is overwritten or freed. No row is preserved
  /// afterwards.
  void preserve_all();

  /// Locks the store's mutex only to look up preserved rows. Throws Error(resource_exhausted) if there was no
  /// memory for rows that changed.
  void copy(std::size_t array, std::uint64_t first, std::uint64_t count, std::byte* out,
            std::mutex& store_mutex) override;

 private:
  struct Copying {
    Array array;
    std::uint64_t at = 0;      // offset in a preserved row
    std::uint64_t copied = 0;  // first row that has not been copied
  };
  /// A preserved row; numbers follow the order of preservation.
  struct Preserved {
    std::uint32_t row;
    std::uint32_t number;  // counts from 1
  };
  /// Number of consecutive rows that share a list of preserved rows.
  static constexpr std::uint64_t kNeighborhood = 4096;
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };

  /// Returns true if rows no longer need to be preserved, or cannot be.
  bool is_idle() const noexcept { return detached_ || lost_ || preserved_bytes_ == 0; }
  bool is_preserved(std::uint64_t row) const noexcept {
    return (is_preserved_[row / 64] >> row % 64 & 1) != 0;
  }
  bool must_preserve(std::uint64_t row) const noexcept {
    return row < rows_ && !is_preserved(row) && row >= arrays_.back().copied &&
           (!touched_ || touched_->has(row));
  }
  void preserve_row(std::uint64_t row);
  void return_chunks();
  std::byte* address_of(std::uint32_t number) const noexcept;
  struct Found {
    std::uint64_t row;
    const std::byte* bytes;
  };
  /// Copies the bits of these rows to `were_preserved_`.
  void read_bits(std::uint64_t first, std::uint64_t count);
  /// Sets `found_` to the preserved rows in [begin, end).
  void find_preserved(std::uint64_t begin, std::uint64_t end);
  /// Copies rows from the arrays, except those in `were_preserved_`. Some may change during the copy.
  void copy_live(const Copying& of, std::uint64_t first, std::uint64_t count, std::byte* out);
  /// Copies the rows of `found_`.
  void copy_preserved(const Copying& of, std::uint64_t first, std::uint64_t count, std::byte* out) const;

  std::uint64_t rows_;                                // number of rows of the shard when it was frozen
  std::optional<TouchedRows> touched_;                // rows of the snapshot; none: all
  std::optional<std::vector<std::uint32_t>> listed_;  // the touched rows, as a list
  std::vector<Copying> arrays_;
  std::uint64_t preserved_bytes_ = 0;  // size of a preserved row over all arrays
  std::uint64_t rows_per_chunk_;
  std::size_t chunk_bytes_;
  // One bit per row, and lists of preserved rows by neighborhood. Random accesses then touch few pages, whose
  // first use is slow.
  std::unique_ptr<std::uint64_t[], Free> is_preserved_;
  std::vector<std::vector<Preserved>> preserved_rows_;
  std::uint32_t preserved_ = 0;
  std::shared_ptr<ChunkPool> pool_;
  std::vector<ChunkPool::Chunk> chunks_;  // preserved rows, by number
  std::optional<Error> lost_;             // set once a row could not be preserved
  // Locked during a copy, so that neither the arrays nor the chunks are freed. Lock order: after the store's
  // mutex.
  std::mutex memory_;
  bool detached_ = false;  // all rows were preserved; written under both mutexes
  // Used by the copying thread only:
  std::vector<std::uint64_t> were_preserved_;  // bits of rows [bits_from_, bits_to_)
  std::uint64_t bits_from_ = 0;                // a multiple of 64
  std::uint64_t bits_to_ = 0;
  std::vector<Found> found_;
};

}  // namespace capstan::ps
