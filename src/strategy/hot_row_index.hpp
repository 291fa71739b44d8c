// hot_row_index.hpp -- slots and ages of the rows in a cache, and the choice of the row to evict.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "capstan/hot_rows.hpp"
#include "strategy/slot_map.hpp"

namespace capstan::strategy {

/// Does not hold the rows themselves. Used by one thread.
class HotRowIndex {
 public:
  explicit HotRowIndex(const HotRowsOptions& options);

  /// How to execute one lookup.
  struct Plan {
    std::vector<std::uint32_t> slots;       // slot of each id of the lookup
    std::vector<std::int64_t> to_read;      // distinct ids whose rows the caller must read
    std::vector<std::uint32_t> read_slots;  // slot for each id of `to_read`
    std::uint32_t rows = 0;                 // capacity that the cache needs: all slots are below it
  };
  /// Plans the lookup of `ids` and assigns slots to rows that are not in the cache. The result is valid until
  /// the next call.
  const Plan& plan(std::span<const std::int64_t> ids);

  /// Removes the rows of these ids from the cache.
  void evict(std::span<const std::int64_t> ids);
  const HotRowsStatistics& statistics() const noexcept { return statistics_; }

 private:
  struct Slot {
    std::int64_t id = kNone;
    std::uint64_t read_at = 0;  // number of the lookup that read the row
    std::uint64_t used_at = 0;  // number of the last lookup that used the row
    bool referenced = false;    // CLOCK's reference bit: used again since the hand passed
  };
  static constexpr std::int64_t kNone = -1;

  /// Returns an unused slot, or evicts a row that the current lookup does not use and returns its slot.
  /// Returns SlotMap::kNone if the lookup uses all slots.
  std::uint32_t acquire_slot();

  HotRowsOptions options_;
  std::uint64_t now_ = 0;  // number of lookups so far
  std::vector<Slot> slots_;
  std::size_t hand_ = 0;
  SlotMap slot_of_;
  std::vector<std::int64_t> overflow_ids_;  // ids for which the cache had no slot in the last lookup
  Plan plan_;
  HotRowsStatistics statistics_;
};

}  // namespace capstan::strategy
