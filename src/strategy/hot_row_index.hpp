// hot_row_index.hpp -- slots and ages of the rows in a cache, and the choice of the row to evict.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "capstan/hot_rows.hpp"

namespace capstan::strategy {

/// Does not hold the rows themselves. Used by one thread.
class HotRowIndex {
 public:
  explicit HotRowIndex(const HotRowsOptions& options);

  /// The steps of one lookup.
  struct Plan {
    std::vector<std::uint32_t> locations;     // slot of each id
    std::vector<std::int64_t> to_read;        // distinct ids
    std::vector<std::uint32_t> to_locations;  // slot of each of to_read
    std::uint32_t rows = 0;                   // capacity that the cache needs: slots are below
  };
  /// Returns which rows to read into which slots, and the slot of each id. Valid until the next call.
  const Plan& plan(std::span<const std::int64_t> ids);

  /// The rows of these ids are not in the cache.
  void evict(std::span<const std::int64_t> ids);
  const HotRowsStatistics& statistics() const noexcept { return statistics_; }

 private:
  struct Location {
    std::int64_t id = kNone;
    std::uint64_t read_at = 0;  // lookups
    std::uint64_t used_at = 0;
    bool again = false;  // used again since the hand passed
  };
  static constexpr std::int64_t kNone = -1;

  std::uint32_t evict();

  HotRowsOptions options_;
  std::uint64_t now_ = 0;  // lookups
  std::vector<Location> locations_;
  std::size_t hand_ = 0;
  std::unordered_map<std::int64_t, std::uint32_t> slot_of_;
  std::vector<std::int64_t> beyond_;  // ids of the last lookup that have no slot of their own
  Plan plan_;
  HotRowsStatistics statistics_;
};

}  // namespace capstan::strategy
