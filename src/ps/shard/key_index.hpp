// key_index.hpp -- the writer of a dynamic table's index: inserts, erases and grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "protocol/key_search.hpp"
#include "protocol/table_layout.hpp"

namespace capstan::ps {

/// Maps keys to rows, in memory that processes of this host read concurrently. One thread at a time.
class KeyIndex {
 public:
  /// Frees the memory of a range, which reads as zeros afterwards.
  using Release = std::function<void(std::byte* memory, std::uint64_t bytes)>;

  /// Makes an empty index in the memory of the shard, which an earlier process may have used. `memory` and
  /// `layout` must outlive this object.
  KeyIndex(std::byte* memory, const protocol::TableLayout& layout, Release release);

  /// Returns the row of a key, or protocol::kDefaultRow.
  std::uint32_t find(std::int64_t key, std::uint64_t hash) const noexcept {
    return protocol::find_key(index_, key, hash);
  }
  /// Sets rows[i] to the row of keys[i].
  void find(std::span<const std::int64_t> keys, std::span<std::uint32_t> rows) const noexcept {
    protocol::find_keys(index_, keys, rows);
  }
  /// Returns the number of lines that a search for a key reads. REQUIRES: the key is in the index.
  std::uint64_t lines_to(std::int64_t key, std::uint64_t hash) const noexcept;
  /// Prefetches the line in which a search for a key with this hash begins.
  void prefetch(std::uint64_t hash) const noexcept { __builtin_prefetch(index_.home(hash)); }
  /// Adds a key. Returns false if its sub-index is full. REQUIRES: the key is not in the index, and its row
  /// is complete.
  bool insert(std::int64_t key, std::uint64_t hash, std::uint32_t row);
  /// Removes a key, and increments the epoch, so that its row may be reused. REQUIRES: it is in the index.
  void erase(std::int64_t key, std::uint64_t hash) noexcept;
  /// Removes all keys.
  void clear() noexcept;

 private:
  struct Sub {
    std::uint64_t keys = 0;
    std::uint64_t erased = 0;     // since overflow bits were computed
    std::uint64_t most_keys = 0;  // number of keys above which it grows
    std::uint64_t touched = 0;    // bytes of the next level that were touched in advance
  };

  protocol::SubIndex& word(std::uint32_t sub) const noexcept { return header_->sub_indexes[sub]; }
  void attach(std::uint32_t sub) noexcept;
  void begin_epoch(std::uint32_t sub) noexcept;
  void grow(std::uint32_t number);
  void touch_next_level(std::uint32_t number) noexcept;
  /// Clears the overflow bits that no key needs.
  void recompute_overflow(std::uint32_t number) noexcept;
  static void place(const protocol::SubIndexLines& lines, std::int64_t key, std::uint64_t hash,
                    std::uint32_t row) noexcept;

  std::byte* memory_;
  const protocol::TableLayout& layout_;
  Release release_;
  protocol::TableHeader* header_;
  protocol::IndexLines index_;
  Sub subs_[protocol::TableHeader::kSubIndexes];
};

}  // namespace capstan::ps
