// touched_rows.hpp -- the set of rows of a shard that have changed since a save.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace capstan::ps {

/// One bit per row. Rows that are added to a table later are ignored. Not thread-safe.
class TouchedRows {
 public:
  /// Creates an empty set, for the save with this mark.
  TouchedRows(std::uint64_t mark, std::uint64_t rows) : mark_(mark), rows_(rows), bits_((rows + 63) / 64) {}

  std::uint64_t mark() const noexcept { return mark_; }
  std::uint64_t rows() const noexcept { return rows_; }
  void add(std::span<const std::uint32_t> rows) noexcept {
    for (const std::uint32_t row : rows) {
      if (row < rows_) bits_[row / 64] |= std::uint64_t{1} << row % 64;
    }
  }
  void add(std::uint64_t first, std::uint64_t count) noexcept;
  void add_all() noexcept { add(0, rows_); }
  bool has(std::uint64_t row) const noexcept { return (bits_[row / 64] >> row % 64 & 1) != 0; }
  /// Returns the row numbers in ascending order.
  std::vector<std::uint32_t> list() const;

 private:
  std::uint64_t mark_;
  std::uint64_t rows_;
  std::vector<std::uint64_t> bits_;
};

}  // namespace capstan::ps
