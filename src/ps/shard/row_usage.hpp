// row_usage.hpp -- which rows of a dynamic table are evicted: old ones, and the least used ones if it is
// full.
#pragma once

#include <cstdint>
#include <span>

#include "protocol/descriptor.hpp"
#include "protocol/table_layout.hpp"

namespace capstan::ps {

/// Records in the states of rows when and how often they were pushed to. One thread at a time.
///
/// Bits of a state: 31 kRowInUse; 30 to 24 the number of pushes, halved as time passes; 23 to 0 the time of
/// the last push. Time is the number of pushed keys in units of 1/1024 of the capacity, so ages are exact up
/// to 16,384 times the capacity. If rows are evicted by age, it is the number of pushes in units of 1/1024 of
/// that age. The decisions depend on the pushes only, so a replica makes the same ones.
class RowUsage {
 public:
  /// `capacity`: number of keys above which rows are evicted, unless the policy is WhenFull::refuse. `header`
  /// and `states` must outlive this object.
  RowUsage(const protocol::TablePolicy& policy, std::uint64_t capacity, protocol::TableHeader& header,
           std::uint32_t* states);

  bool evicts() const noexcept { return policy_.evicts(); }
  std::uint64_t capacity() const noexcept { return capacity_; }
  /// Returns the state of a row that is added now.
  std::uint32_t state_of_new_row() const noexcept;
  /// Returns the state of a restored row, which keeps its number of pushes.
  std::uint32_t state_of_restored_row(std::uint32_t saved) const noexcept;
  /// Number of rows in use that exceed the capacity.
  std::uint64_t excess() const noexcept {
    if (policy_.when_full == WhenFull::refuse || header_.keys <= capacity_) return 0;
    return header_.keys - capacity_;
  }
  /// Counts a push, or a part of one that does not begin it, to each row; ignores kDefaultRow.
  void count(std::span<const std::uint32_t> rows, bool begins_push) noexcept;
  /// Number of rows whose age is examined at each entry, so that all rows are examined five times per
  /// TablePolicy::evict_after pushes; at most 4,096, so that no push takes long.
  std::uint64_t rows_to_examine() const noexcept;
  /// Examines the next rows, at most `*left`, which it reduces by their number. Sets the first elements of
  /// `out` to the rows that are older than TablePolicy::evict_after; returns their number.
  std::size_t find_old(std::span<std::uint32_t> out, std::uint64_t* left) noexcept;
  /// Returns a row to evict: of 16 sampled rows in use, the one that was pushed to least recently, or least
  /// often. Never returns a row in `chosen`. REQUIRES: more rows are in use than `chosen` has.
  std::uint32_t choose(std::span<const std::uint32_t> chosen) noexcept;

 private:
  /// Returns the row of a sample, in use or not.
  std::uint32_t sample(std::uint64_t number) const noexcept;
  std::uint32_t now() const noexcept;
  std::uint32_t age_of(std::uint32_t state) const noexcept;
  std::uint32_t pushes_of(std::uint32_t state) const noexcept;
  /// Returns the value of keeping a row: the sampled row with the smallest one is evicted.
  std::uint64_t value_of(std::uint32_t state) const noexcept;

  protocol::TablePolicy policy_;
  std::uint64_t capacity_;
  std::uint64_t unit_;       // pushed keys, or pushes, per unit of time
  std::uint64_t half_life_;  // time after which a number of pushes is halved
  protocol::TableHeader& header_;
  std::uint32_t* states_;
};

}  // namespace capstan::ps
