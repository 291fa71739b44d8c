// key_search.hpp -- finds keys in the index of a dynamic table, which another process may be changing.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>

#include "protocol/table_layout.hpp"

namespace capstan::protocol {

/// The lines of a sub-index at its present level.
struct SubIndexLines {
  const IndexLine* first = nullptr;
  std::uint64_t mask = 0;  // number of lines - 1; the number is a power of two

  std::uint64_t home(std::uint64_t hash) const noexcept { return hash >> 6 & mask; }
};

/// The lines of a table's index.
class IndexLines {
 public:
  SubIndexLines& operator[](std::uint32_t sub_index) { return lines_[sub_index]; }
  const SubIndexLines& operator[](std::uint32_t sub_index) const { return lines_[sub_index]; }
  /// Returns the lines of the sub-index that a hash belongs to.
  const SubIndexLines& of(std::uint64_t hash) const noexcept {
    return lines_[hash % TableHeader::kSubIndexes];
  }
  /// Returns the line in which the search for a key begins.
  const IndexLine* home(std::uint64_t hash) const noexcept {
    const SubIndexLines& lines = of(hash);
    return lines.first + lines.home(hash);
  }

 private:
  std::array<SubIndexLines, TableHeader::kSubIndexes> lines_{};
};

/// Returns the row of a key, or kDefaultRow if the index does not have the key.
inline std::uint32_t find_key(const IndexLines& index, std::int64_t key, std::uint64_t hash) noexcept {
  const SubIndexLines& lines = index.of(hash);
  std::uint64_t at = lines.home(hash);
  for (std::uint64_t probed = 0; probed <= lines.mask; ++probed, at = (at + 1) & lines.mask) {
    const IndexLine& line = lines.first[at];
    const std::uint32_t state = __atomic_load_n(&line.state, __ATOMIC_ACQUIRE);
    const std::uint32_t equal = line.entries_with(key) & state;
    if (equal != 0) return __atomic_load_n(&line.rows[std::countr_zero(equal)], __ATOMIC_RELAXED);
    if ((state & IndexLine::kOverflowed) == 0) break;
  }
  return kDefaultRow;
}

/// Sets rows[i] to the row of keys[i], for all keys.
void find_keys(const IndexLines& index, std::span<const std::int64_t> keys, std::span<std::uint32_t> rows);

}  // namespace capstan::protocol
