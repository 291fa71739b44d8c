// key_index.hpp -- the writer of a dynamic table's index: inserts, erases and grows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "protocol/table_layout.hpp"

namespace capstan::ps {

/// Maps keys to rows, in memory that processes of this host read concurrently. One thread at a time.
class KeyIndex {
 public:
  /// Frees the memory of a range, which reads as zeros afterwards.
  using Release = std::function<void(std::byte* memory, std::uint64_t bytes)>;

  /// Makes an empty index. `memory`: of the shard, which an earlier process may have used; must outlive this
  /// object, as `layout` must.
  KeyIndex(std::byte* memory, const protocol::TableLayout& layout, Release release);

  /// Returns the row of a key, or protocol::kDefaultRow.
  std::uint32_t find(std::int64_t key, std::uint64_t hash) const noexcept;
  /// Sets rows[i] to the row of keys[i].
  void find(std::span<const std::int64_t> keys, std::span<std::uint32_t> rows) const noexcept {
    protocol::find_in_blocks(
        keys, rows, [this](std::uint64_t hash) { return home(hash); },
        [this](std::int64_t key, std::uint64_t hash) { return find(key, hash); });
  }
  /// Adds a key. Returns false if its sub-index is full. REQUIRES: the key is not in the index, and its row
  /// is complete.
  bool insert(std::int64_t key, std::uint64_t hash, std::uint32_t row);
  /// Removes a key, and increments the epoch, so that its row may be reused. REQUIRES: it is in the index.
  void erase(std::int64_t key, std::uint64_t hash) noexcept;
  /// Removes all keys.
  void clear() noexcept;

 private:
  struct Sub {
    protocol::IndexLine* lines = nullptr;
    std::uint64_t mask = 0;
    std::uint64_t keys = 0;
    std::uint64_t erased = 0;  // since overflow bits were computed
  };

  protocol::IndexLine* home(std::uint64_t hash) const noexcept {
    const Sub& sub = subs_[hash % protocol::TableHeader::kSubIndexes];
    return sub.lines + (hash >> 6 & sub.mask);
  }
  protocol::SubIndex& word(std::uint32_t sub) const noexcept { return header_->sub_indexes[sub]; }
  void attach(std::uint32_t sub) noexcept;
  void begin_epoch(std::uint32_t sub) noexcept;
  void grow(std::uint32_t number);
  /// Clears the overflow bits that no key needs.
  void recompute_overflow(Sub& sub) noexcept;
  static void place(protocol::IndexLine* lines, std::uint64_t mask, std::int64_t key, std::uint64_t hash,
                    std::uint32_t row) noexcept;

  std::byte* memory_;
  const protocol::TableLayout& layout_;
  Release release_;
  protocol::TableHeader* header_;
  Sub subs_[protocol::TableHeader::kSubIndexes];
};

}  // namespace capstan::ps
