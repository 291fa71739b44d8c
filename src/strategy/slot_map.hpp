// slot_map.hpp -- a hash map from ids to slots that does not allocate unless it grows.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "base/key_hash.hpp"

namespace capstan::strategy {

/// Open addressing with linear probing. erase() moves entries back instead of leaving tombstones. Used by one
/// thread.
class SlotMap {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  /// Allocates memory for `ids` ids. The map grows if there are more than 1.5 times as many.
  explicit SlotMap(std::size_t ids)
      : entries_(std::bit_ceil(std::max<std::size_t>(4, 2 * ids))), mask_(entries_.size() - 1) {}

  /// Returns the slot of an id, or kNone.
  std::uint32_t find(std::int64_t id) const noexcept { return entries_[location_of(id)].slot; }
  /// Adds an id. REQUIRES: it is not in the map, and `slot` is not kNone.
  void insert(std::int64_t id, std::uint32_t slot) {
    if (size_ + 1 > entries_.size() / 4 * 3) grow();
    Entry& entry = entries_[location_of(id)];
    CAPSTAN_ASSERT(entry.slot == kNone);
    entry = {id, slot};
    ++size_;
  }
  /// Removes an id. Returns false if it is not in the map.
  bool erase(std::int64_t id) noexcept {
    std::size_t hole = location_of(id);
    if (entries_[hole].slot == kNone) return false;
    --size_;
    for (std::size_t at = (hole + 1) & mask_; entries_[at].slot != kNone; at = (at + 1) & mask_) {
      // An entry may move to the hole unless its search begins after the hole.
      if (((at - home_of(entries_[at].id)) & mask_) < ((at - hole) & mask_)) continue;
      entries_[hole] = entries_[at];
      hole = at;
    }
    entries_[hole] = {};
    return true;
  }
  std::size_t size() const noexcept { return size_; }

 private:
  struct Entry {
    std::int64_t id = 0;
    std::uint32_t slot = kNone;  // kNone: the entry is free
  };

  std::size_t home_of(std::int64_t id) const noexcept { return hash_of(id) & mask_; }
  /// Returns the location of the id's entry, or of the free entry at which a search for the id ends.
  std::size_t location_of(std::int64_t id) const noexcept {
    std::size_t at = home_of(id);
    while (entries_[at].slot != kNone && entries_[at].id != id) at = (at + 1) & mask_;
    return at;
  }
  void grow() {
    const std::vector<Entry> before = std::exchange(entries_, std::vector<Entry>(2 * entries_.size()));
    mask_ = entries_.size() - 1;
    for (const Entry& entry : before) {
      if (entry.slot != kNone) entries_[location_of(entry.id)] = entry;
    }
  }

  std::vector<Entry> entries_;
  std::size_t mask_;
  std::size_t size_ = 0;
};

}  // namespace capstan::strategy
