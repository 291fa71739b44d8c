// table_list.hpp -- several variables that hold the rows of one table between them, as tf.nn.embedding_lookup
// takes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/export.hpp"
#include "capstan/slice.hpp"
#include "capstan/variable.hpp"

namespace capstan {

/// Which of n tables has row `id`.
enum class PartitionStrategy : std::uint8_t {
  mod,  ///< table id % n, as its row id / n: 13 ids over 5 are [[0,5,10],[1,6,11],[2,7,12],[3,8],[4,9]]
  div,  ///< the tables one after the other: 13 ids over 5 are [[0,1,2],[3,4,5],[6,7,8],[9,10],[11,12]]
};

/// The arithmetic of it.
class CAPSTAN_API TableMap {
 public:
  struct Place {
    std::size_t table;
    std::int64_t row;
    friend bool operator==(const Place&, const Place&) = default;
  };
  /// What one table has of a list of ids: its own rows, and where in the list they stand.
  struct Part {
    std::vector<std::int64_t> rows;
    std::vector<std::size_t> positions;
  };

  /// `names` and `shapes` of the tables. Throws Error(invalid_argument) for no tables, a scalar, and shapes
  /// that differ beyond axis 0.
  TableMap(std::vector<std::string> names, const std::vector<Shape>& shapes, PartitionStrategy strategy);

  /// Throws Error(out_of_range) for an id that no table has.
  Place place(std::int64_t id) const;
  /// One part for each table.
  std::vector<Part> split(std::span<const std::int64_t> ids) const;
  std::int64_t rows() const noexcept { return first_rows_.back(); }
  /// Of all tables: "a, b, c".
  const std::string& name() const noexcept { return name_; }

 private:
  [[noreturn]] void refuse(std::int64_t id, const std::string& where) const;

  std::vector<std::string> names_;
  std::vector<std::int64_t> first_rows_;  // one for each table, and one past the last
  PartitionStrategy strategy_;
  std::string name_;
};

/// Reads and pushes as a variable does. A handle, as the variables in it. Used by the thread that uses them.
template <class V>
class TableList {
 public:
  using value_type = typename V::value_type;

  /// TensorFlow's default is mod for lists. "div" takes tables of any sizes. Throws as TableMap does.
  explicit TableList(std::vector<V> tables, PartitionStrategy strategy = PartitionStrategy::mod)
      : tables_(std::move(tables)), map_(names(tables_), shapes(tables_), strategy) {
    shape_ = shape_of(tables_.front());
    shape_.front() = map_.rows();
  }

  const std::string& name() const noexcept { return map_.name(); }
  /// All tables' rows, and what is beyond axis 0.
  const Shape& shape() const noexcept { return shape_; }
  std::uint64_t rows() const noexcept { return static_cast<std::uint64_t>(map_.rows()); }
  std::uint64_t width() const { return tables_.front().width(); }
  const std::vector<V>& tables() const noexcept { return tables_; }

  /// Throws Error(out_of_range) for an id that no table has.
  void check_ids(std::span<const std::int64_t> ids) const {
    for (const std::int64_t id : ids) (void)map_.place(id);
  }

  /// The rows `ids`, in that order; `out` has ids.size() * width() elements. Ids are checked before anything
  /// is sent; the tables are read at the same time.
  void lookup(std::span<const std::int64_t> ids, std::span<Element<value_type>> out) const {
    const std::vector<TableMap::Part> parts = map_.split(ids);
    std::vector<std::vector<Element<value_type>>> read(parts.size());
    std::vector<Pending> pending;
    for (std::size_t table = 0; table < parts.size(); ++table) {
      if (parts[table].rows.empty()) continue;
      read[table].resize(parts[table].rows.size() * width());
      pending.push_back(tables_[table].lookup_async(parts[table].rows, std::span(read[table])));
    }
    for (Pending& one : pending) one.wait();
    for (std::size_t table = 0; table < parts.size(); ++table) {
      for (std::size_t i = 0; i < parts[table].positions.size(); ++i) {
        std::copy_n(read[table].data() + i * width(), width(),
                    out.data() + parts[table].positions[i] * width());
      }
    }
  }

  /// To each table what concerns it, as by push_all: what one of them refuses is sent to none.
  void push(const IndexedSlices<value_type>& gradient) const {
    if (gradient.values.size() != gradient.ids.size() * width()) {
      throw Error(Code::invalid_argument, "push to " + name() + ": " + std::to_string(gradient.ids.size()) +
                                              " rows of " + std::to_string(width()) +
                                              " elements do not make the " +
                                              std::to_string(gradient.values.size()) + " that were given");
    }
    const std::vector<TableMap::Part> parts = map_.split(gradient.ids);
    std::vector<std::vector<Element<value_type>>> values(parts.size());
    std::vector<Push<value_type>> pushes;
    for (std::size_t table = 0; table < parts.size(); ++table) {
      if (parts[table].rows.empty()) continue;
      for (const std::size_t position : parts[table].positions) {
        const auto row = gradient.values.begin() + static_cast<std::ptrdiff_t>(position * width());
        values[table].insert(values[table].end(), row, row + static_cast<std::ptrdiff_t>(width()));
      }
      pushes.push_back({tables_[table], parts[table].rows, values[table]});
    }
    push_all(std::span<const Push<value_type>>(pushes));
  }

 private:
  static std::vector<std::string> names(const std::vector<V>& tables) {
    std::vector<std::string> out;
    for (const V& table : tables) out.push_back(table.name());
    return out;
  }
  static std::vector<Shape> shapes(const std::vector<V>& tables) {
    std::vector<Shape> out;
    for (const V& table : tables) out.push_back(shape_of(table));
    return out;
  }

  std::vector<V> tables_;
  TableMap map_;
  Shape shape_;
};

}  // namespace capstan
