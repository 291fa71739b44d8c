// counted_table.hpp -- a table of any rank in local memory, and a wrapper that counts the reads of a table or
// variable.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capstan/array.hpp"

namespace capstan {

/// A table in local memory with the read functions of a variable.
template <class T>
class LocalTable {
 public:
  using value_type = T;

  /// Sets its elements to 1, 2, 3, ...
  explicit LocalTable(const Shape& shape) : all_(shape) {
    for (std::size_t i = 0; i < all_.size(); ++i) all_.values[i] = static_cast<Element<T>>(i + 1);
  }
  explicit LocalTable(Array<T> all) : all_(std::move(all)) {}

  std::string name() const { return "local"; }
  const Shape& shape() const { return all_.shape; }
  std::uint64_t rows() const { return all_.rank() == 0 ? 1 : static_cast<std::uint64_t>(all_.shape[0]); }
  std::uint64_t width() const { return rows() == 0 ? 0 : all_.size() / rows(); }
  Array<T>& all() { return all_; }
  const Array<T>& all() const { return all_; }

  void lookup(std::span<const std::int64_t> ids, std::span<Element<T>> out) const {
    ASSERT_EQ(out.size(), ids.size() * width());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      ASSERT_GE(ids[i], 0);
      ASSERT_LT(ids[i], static_cast<std::int64_t>(rows()));
      copy(static_cast<std::uint64_t>(ids[i]), out.subspan(i * width(), width()));
    }
  }
  void pull(std::uint64_t first_row, std::span<Element<T>> out) const {
    ASSERT_LE(first_row * width() + out.size(), all_.size());
    copy(first_row, out);
  }

 private:
  void copy(std::uint64_t first_row, std::span<Element<T>> out) const {
    std::copy_n(all_.values.begin() + static_cast<std::ptrdiff_t>(first_row * width()), out.size(),
                out.begin());
  }
  Array<T> all_;
};

/// Counts the reads of a table and the rows that they name.
template <class Table>
class Counted {
 public:
  using value_type = typename Table::value_type;

  explicit Counted(Table table) : table_(std::move(table)) {}

  auto name() const { return table_.name(); }
  auto shape() const { return table_.shape(); }
  std::uint64_t rows() const { return table_.rows(); }
  std::uint64_t width() const { return table_.width(); }
  void lookup(std::span<const std::int64_t> ids, std::span<Element<value_type>> out) const {
    ++lookups_;
    rows_.insert(rows_.end(), ids.begin(), ids.end());
    table_.lookup(ids, out);
  }
  void pull(std::uint64_t first_row, std::span<Element<value_type>> out) const {
    ++pulls_;
    for (std::size_t i = 0; i < out.size() / width(); ++i) {
      rows_.push_back(static_cast<std::int64_t>(first_row + i));
    }
    table_.pull(first_row, out);
  }

  int lookups() const { return lookups_; }
  int pulls() const { return pulls_; }
  /// A row that was read n times occurs n times.
  const std::vector<std::int64_t>& rows_read() const { return rows_; }
  void forget() {
    lookups_ = pulls_ = 0;
    rows_.clear();
  }
  const Table& table() const { return table_; }

 private:
  Table table_;
  mutable int lookups_ = 0;
  mutable int pulls_ = 0;
  mutable std::vector<std::int64_t> rows_;
};

}  // namespace capstan
