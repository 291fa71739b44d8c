// row_usage.hpp -- which rows of a full dynamic table are evicted first.
#pragma once

#include <cstdint>
#include <span>

#include "capstan/table_options.hpp"
#include "protocol/table_layout.hpp"

namespace capstan::ps {

/// Records in the states of rows when and how often they were pushed to. One thread at a time.
///
/// Bits of a state: 31 kRowInUse; 30 to 24 the number of pushes, halved as time passes; 23 to 0 the time of
/// the last push. Time is the number of pushed keys in units of 1/1024 of the capacity, so ages are exact up
/// to 16,384 times the capacity. The decisions depend on the pushes only: a replica makes the same.
class RowUsage {
 public:
  /// `capacity`: number of keys above which rows are evicted. `header` and `states` must outlive this object.
  RowUsage(WhenFull when_full, std::uint64_t capacity, protocol::TableHeader& header, std::uint32_t* states);

  bool evicts() const noexcept { return when_full_ != WhenFull::refuse; }
  std::uint64_t capacity() const noexcept { return capacity_; }
  /// Returns the state of a row that is added now.
  std::uint32_t state_of_new_row() const noexcept;
  /// Returns the state of a restored row, which keeps its number of pushes.
  std::uint32_t state_of_restored_row(std::uint32_t saved) const noexcept;
  /// Counts a push to each row; ignores kDefaultRow.
  void count(std::span<const std::uint32_t> rows) noexcept;
  /// Returns a row to evict: of 16 sampled rows in use, the one that was pushed to least recently, or least
  /// often. REQUIRES: more rows are in use than `chosen` has, which are left out.
  std::uint32_t choose(std::span<const std::uint32_t> chosen) noexcept;

 private:
  std::uint32_t now() const noexcept;
  std::uint32_t age_of(std::uint32_t state) const noexcept;
  std::uint32_t pushes_of(std::uint32_t state) const noexcept;
  /// The row with the smallest value is evicted.
  std::uint64_t value_of(std::uint32_t state) const noexcept;

  WhenFull when_full_;
  std::uint64_t capacity_;
  std::uint64_t unit_;       // pushed keys per unit of time
  std::uint64_t half_life_;  // time after which a number of pushes is halved
  protocol::TableHeader& header_;
  std::uint32_t* states_;
};

}  // namespace capstan::ps
