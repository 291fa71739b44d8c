// hot_row_index.hpp -- which rows lie where in a cache of rows, how old they are, and which make room.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "capstan/hot_rows.hpp"

namespace capstan::strategy {

/// Knows nothing of the rows themselves. One thread.
class HotRowIndex {
 public:
  explicit HotRowIndex(const HotRowsOptions& options);

  /// One lookup.
  struct Plan {
    std::vector<std::uint32_t> locations;     // of each id
    std::vector<std::int64_t> to_read;        // different ones
    std::vector<std::uint32_t> to_locations;  // of each of them
    std::uint32_t rows = 0;                   // that the cache has to have: places are below
  };
  /// What has to be read before every id's row lies at its place. Valid until the next call.
  const Plan& plan(std::span<const std::int64_t> ids);

  /// They are not there.
  void evict(std::span<const std::int64_t> ids);
  const HotRowsStatistics& statistics() const noexcept { return statistics_; }

 private:
  struct Location {
    std::int64_t id = kNone;
    std::uint64_t read_at = 0;  // lookups
    std::uint64_t used_at = 0;
    bool again = false;  // it was named again since the hand passed
  };
  static constexpr std::int64_t kNone = -1;

  std::uint32_t make_room();

  HotRowsOptions options_;
  std::uint64_t now_ = 0;  // lookups
  std::vector<Location> locations_;
  std::size_t hand_ = 0;
  std::unordered_map<std::int64_t, std::uint32_t> place_of_;
  std::vector<std::int64_t> beyond_;  // of the last lookup, without a place of their own
  Plan plan_;
  HotRowsStatistics statistics_;
};

}  // namespace capstan::strategy
