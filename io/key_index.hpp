// key_index.hpp -- rows by key in a model file: a hash table with linear probing.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "base/key_hash.hpp"

namespace capstan::io {

/// Returns the number of slots of an index: a power of two, twice to four times the number of keys.
constexpr std::uint64_t key_index_slots(std::uint64_t keys) noexcept { return 2 * std::bit_ceil(keys + 1); }

/// Returns an index of different keys. The row of a key plus 1 is in the first slot from hash_of(key) modulo
/// the number of slots on that was not in use; slots without a row are 0.
inline std::vector<std::int64_t> make_key_index(std::span<const std::int64_t> keys) {
  std::vector<std::int64_t> slots(key_index_slots(keys.size()));
  for (std::size_t row = 0; row < keys.size(); ++row) {
    std::uint64_t at = hash_of(keys[row]) & (slots.size() - 1);
    while (slots[at] != 0) at = (at + 1) & (slots.size() - 1);
    slots[at] = static_cast<std::int64_t>(row + 1);
  }
  return slots;
}

/// Finds rows in an index and keys that are anywhere in memory, without alignment.
class KeyIndexReader {
 public:
  /// `index` and `keys`: `slots` and `rows` integers of 64 bits. They must outlive this object.
  KeyIndexReader(const char* index, std::uint64_t slots, const char* keys, std::uint64_t rows) noexcept
      : index_(index), mask_(slots - 1), keys_(keys), rows_(rows) {}

  /// Returns nothing for a key without a row, also if the index is damaged.
  std::optional<std::uint64_t> find(std::int64_t key) const noexcept {
    std::uint64_t at = hash_of(key) & mask_;
    for (std::uint64_t probed = 0; probed <= mask_; ++probed, at = (at + 1) & mask_) {
      const auto row = static_cast<std::uint64_t>(integer(index_, at)) - 1;
      if (row >= rows_) return std::nullopt;
      if (integer(keys_, row) == key) return row;
    }
    return std::nullopt;
  }

 private:
  static std::int64_t integer(const char* from, std::uint64_t number) noexcept {
    std::int64_t value = 0;
    std::memcpy(&value, from + number * sizeof value, sizeof value);
    return value;
  }

  const char* index_;
  std::uint64_t mask_;
  const char* keys_;
  std::uint64_t rows_;
};

}  // namespace capstan::io
