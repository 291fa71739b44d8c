// embedding.hpp -- rows of embedding tables by id, individually or combined over the ids of each row of a
// batch, and the gradients of both, ready to push.
//
// `Table` is a Variable or a TableList of floating-point numbers (embedding_lookup without max_norm also
// accepts other dtypes). Every function fetches each distinct id once. All throw Error, before any request is
// sent: out_of_range for an id below 0 or past the last row; invalid_argument for inconsistent splits,
// weights or gradients, for a max_norm that is not a number of at least 0, and for a scalar variable.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/detail/export.hpp"
#include "capstan/detail/slice.hpp"
#include "capstan/variable.hpp"

namespace capstan {

/// How the embeddings e of one row's ids, with weights w, are combined. A divisor of 0 yields 0.
enum class Combiner : std::uint8_t {
  mean,   ///< sum(w e) / sum(w)
  sum,    ///< sum(w e)
  sqrtn,  ///< sum(w e) / sqrt(sum(w^2))
};

/// Ids of a batch: row r has ids[row_splits[r]] up to, not including, ids[row_splits[r + 1]], possibly none.
struct CAPSTAN_API RaggedIds {
  std::vector<std::int64_t> row_splits = {0};
  std::vector<std::int64_t> ids = {};
  /// One weight per id; empty: all weights are 1.
  std::vector<double> weights = {};
  /// Shape of a batch with more than one axis; the product of the sizes is rows(). Empty: {rows()}.
  Shape batch = {};

  /// `{{0, 3}, {4}, {}, {1}}`. `weights` has the same structure, or is empty.
  static RaggedIds from_rows(const std::vector<std::vector<std::int64_t>>& ids,
                             const std::vector<std::vector<double>>& weights = {});
  /// Id i belongs to row row_of[i], in [0, rows). Ids of one row keep their order; rows may be in any order.
  static RaggedIds from_pairs(std::span<const std::int64_t> row_of, std::span<const std::int64_t> ids,
                              std::int64_t rows, std::span<const double> weights = {});
  /// From the parts of a tf.SparseTensor: `indices` has shape (ids, axes); ids are combined over the last
  /// axis of `dense_shape`, the axes before it are the batch.
  static RaggedIds from_sparse(const Array<std::int64_t>& indices, std::span<const std::int64_t> ids,
                               const Shape& dense_shape, std::span<const double> weights = {});

  std::int64_t rows() const noexcept { return static_cast<std::int64_t>(row_splits.size()) - 1; }
  Shape batch_shape() const { return batch.empty() ? Shape{rows()} : batch; }

  /// Throws Error(invalid_argument) unless splits begin at 0, do not decrease, and end at ids.size(), weights
  /// are empty or one per id, and the batch shape has rows() elements. Lookups call it.
  void check() const;

  /// Removes ids below 0 and ids whose weight is not above 0; a row without remaining ids gets `default_id`,
  /// if given, with weight 1.
  RaggedIds pruned(std::optional<std::int64_t> default_id = {}) const;

  /// Returns the divisor of each row's weighted sum; 0 for an empty row. Throws Error(invalid_argument) for a
  /// value that is not a Combiner.
  std::vector<double> divisors(Combiner combiner) const;

  friend bool operator==(const RaggedIds&, const RaggedIds&) = default;
};

/// Assignment of ids to the rows of n tables.
enum class PartitionStrategy : std::uint8_t {
  mod,  ///< id in table id % n, row id / n: 13 ids over 5 are [[0,5,10],[1,6,11],[2,7,12],[3,8],[4,9]]
  div,  ///< consecutive ids per table: 13 ids over 5 are [[0,1,2],[3,4,5],[6,7,8],[9,10],[11,12]]
};

/// Maps ids to tables and rows.
class CAPSTAN_API TableMap {
 public:
  struct Location {
    std::size_t table;
    std::int64_t row;
    friend bool operator==(const Location&, const Location&) = default;
  };
  /// One table's share of a list of ids: its rows, and their positions in the list.
  struct Part {
    std::vector<std::int64_t> rows;
    std::vector<std::size_t> positions;
  };

  /// `names` and `shapes` of the tables. Throws Error(invalid_argument) for an empty list, a scalar, and
  /// shapes that differ beyond axis 0.
  TableMap(std::vector<std::string> names, const std::vector<Shape>& shapes, PartitionStrategy strategy);

  /// Throws Error(out_of_range) for an id that is in no table.
  Location location(std::int64_t id) const;
  /// One part for each table.
  std::vector<Part> split(std::span<const std::int64_t> ids) const;
  std::int64_t rows() const noexcept { return first_rows_.back(); }
  /// Names of all tables: "a, b, c".
  const std::string& name() const noexcept { return name_; }

 private:
  [[noreturn]] void refuse(std::int64_t id, const std::string& where) const;

  std::vector<std::string> names_;
  std::vector<std::int64_t> first_rows_;  // first row of each table, then the total number of rows
  PartitionStrategy strategy_;
  std::string name_;
};

/// Several tables that are read and pushed to as one variable. A handle, like the tables; used by the thread
/// that uses the tables.
template <class V>
class TableList {
 public:
  using value_type = typename V::value_type;

  /// The default is that of TensorFlow for lists. `div` accepts tables of any sizes. Throws as TableMap does.
  explicit TableList(std::vector<V> tables, PartitionStrategy strategy = PartitionStrategy::mod)
      : tables_(std::move(tables)), map_(names(tables_), shapes(tables_), strategy) {
    shape_ = shape_of(tables_.front());
    shape_.front() = map_.rows();
  }

  const std::string& name() const noexcept { return map_.name(); }
  /// Axis 0 is the total of all tables' rows; the other axes are those of each table.
  const Shape& shape() const noexcept { return shape_; }
  std::uint64_t rows() const noexcept { return static_cast<std::uint64_t>(map_.rows()); }
  std::uint64_t width() const { return tables_.front().width(); }
  const std::vector<V>& tables() const noexcept { return tables_; }

  /// Throws Error(out_of_range) for an id that is in no table.
  void check_ids(std::span<const std::int64_t> ids) const {
    for (const std::int64_t id : ids) (void)map_.location(id);
  }

  /// Reads the rows `ids`, in that order, into `out` of ids.size() * width() elements. Checks all ids before
  /// any request is sent; reads the tables concurrently.
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

  /// Pushes each table's share, as push_all does: if one table rejects its share, none is sent.
  void push(const IndexedSlices<value_type>& gradient) const {
    if (gradient.values.size() != gradient.ids.size() * width()) {
      throw Error(Code::invalid_argument, "push to " + name() + ": found " +
                                              std::to_string(gradient.values.size()) + " values, expected " +
                                              std::to_string(gradient.ids.size()) + " rows of " +
                                              std::to_string(width()));
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

namespace embedding {

/// Distinct ids in order of first appearance and, for each id given, its index among them.
struct CAPSTAN_API Distinct {
  std::vector<std::int64_t> ids;
  std::vector<std::size_t> locations;
  explicit Distinct(std::span<const std::int64_t> given);
};

CAPSTAN_API void check_ids(const std::string& table, std::span<const std::int64_t> ids, std::uint64_t rows);
CAPSTAN_API void check_max_norm(const std::string& table, std::optional<double> max_norm,
                                bool floating_point);
CAPSTAN_API void check_gradient(const std::string& table, const Shape& gradient, const Shape& looked_up);

/// Checks all arguments of a lookup; returns the shape of the rows that are looked up.
template <class Table>
Shape check(const Table& table, std::span<const std::int64_t> ids, const Shape& batch,
            std::optional<double> max_norm) {
  Shape out = shape_of_rows(table.name(), shape_of(table), batch);
  if constexpr (requires { table.check_ids(ids); }) {
    table.check_ids(ids);  // a TableList maps ids to tables; a DynamicTable accepts any id
  } else {
    check_ids(table.name(), ids, table.rows());
  }
  check_max_norm(table.name(), max_norm, Floating<typename Table::value_type>);
  return out;
}

template <class Table, class T = typename Table::value_type>
void read_rows(const Table& table, std::span<const std::int64_t> ids, std::optional<double> max_norm,
               std::span<Element<T>> out) {
  if (out.empty()) return;
  table.lookup(ids, out);
  if constexpr (Floating<T>) {
    if (max_norm) clip_by_norm(out, table.width(), *max_norm);
  }
}

template <class Table, class T = typename Table::value_type>
std::vector<Element<T>> rows_of(const Table& table, std::span<const std::int64_t> ids,
                                std::optional<double> max_norm) {
  std::vector<Element<T>> rows(ids.size() * table.width());
  read_rows(table, ids, max_norm, std::span(rows));
  return rows;
}

/// Converts the sums of the gradients of each id's row to the IndexedSlices to push.
template <class Table, class T = typename Table::value_type>
IndexedSlices<T> slices_of(const Table& table, std::vector<std::int64_t> ids,
                           std::vector<Accumulator<T>> sums, std::optional<double> max_norm) {
  if (max_norm && !sums.empty()) {
    const std::vector<T> rows = rows_of(table, ids, std::nullopt);
    clip_by_norm_gradient<T>(rows, table.width(), *max_norm, sums);
  }
  if constexpr (std::is_same_v<T, Accumulator<T>>) {
    return {std::move(ids), std::move(sums)};
  } else {
    IndexedSlices<T> slices{std::move(ids), std::vector<T>(sums.size())};
    std::transform(sums.begin(), sums.end(), slices.values.begin(),
                   [](Accumulator<T> sum) { return static_cast<T>(sum); });
    return slices;
  }
}

}  // namespace embedding

/// Returns the rows `ids`, in that order, with shape ids.shape + table.shape[1:]. With `max_norm`, scales
/// down each returned row whose L2 norm exceeds it, as tf.clip_by_norm does; the table is unchanged.
template <class Table, class T = typename Table::value_type>
Array<T> embedding_lookup(const Table& table, const Array<std::int64_t>& ids,
                          std::optional<double> max_norm = {}) {
  Array<T> out(embedding::check(table, ids.values, ids.shape, max_norm));
  if (out.size() == 0) return out;
  const std::size_t width = table.width();
  const embedding::Distinct distinct(ids.values);
  const std::span<Element<T>> rows(out.values);
  embedding::read_rows(table, distinct.ids, max_norm, rows.first(distinct.ids.size() * width));
  if (distinct.ids.size() == ids.size()) return out;
  // Locations are assigned in order of first appearance, so locations[i] <= i: copying from the end backward
  // expands the rows in place.
  for (std::size_t i = ids.size(); i-- > 0;) {
    if (distinct.locations[i] == i) break;  // holds for all earlier rows too
    std::copy_n(rows.data() + distinct.locations[i] * width, width, rows.data() + i * width);
  }
  return out;
}
template <class Table, class T = typename Table::value_type>
Array<T> embedding_lookup(const Table& table, ConstSpan<std::int64_t> ids,
                          std::optional<double> max_norm = {}) {
  return embedding_lookup(table, Array<std::int64_t>::vector({ids.begin(), ids.end()}), max_norm);
}

/// Returns, for each row of `batch`, the combined embeddings of its ids, with shape batch + table.shape[1:].
/// A row without ids yields zeros. `max_norm` clips each embedding before it is weighted.
template <class Table, Floating T = typename Table::value_type>
Array<T> embedding_lookup_sparse(const Table& table, const RaggedIds& batch,
                                 Combiner combiner = Combiner::mean, std::optional<double> max_norm = {}) {
  batch.check();
  const std::vector<double> divisors = batch.divisors(combiner);
  Array<T> out(embedding::check(table, batch.ids, batch.batch_shape(), max_norm));
  const std::size_t width = table.width();
  const embedding::Distinct distinct(batch.ids);
  const std::vector<T> rows = embedding::rows_of(table, distinct.ids, max_norm);
  std::vector<Accumulator<T>> sum(width);
  for (std::size_t r = 0; r < divisors.size(); ++r) {
    const auto divisor = static_cast<Accumulator<T>>(divisors[r]);
    if (divisor == 0) continue;
    std::fill(sum.begin(), sum.end(), Accumulator<T>{0});
    for (auto i = static_cast<std::size_t>(batch.row_splits[r]);
         i < static_cast<std::size_t>(batch.row_splits[r + 1]); ++i) {
      const auto weight = static_cast<Accumulator<T>>(batch.weights.empty() ? 1 : batch.weights[i]);
      const T* row = rows.data() + distinct.locations[i] * width;
      for (std::size_t k = 0; k < width; ++k) sum[k] += weight * static_cast<Accumulator<T>>(row[k]);
    }
    for (std::size_t k = 0; k < width; ++k) out.values[r * width + k] = static_cast<T>(sum[k] / divisor);
  }
  return out;
}

/// As embedding_lookup_sparse, for unvalidated ids: drops ids below 0 and ids whose weight is not above 0. A
/// row without remaining ids yields the embedding of `default_id`, or zeros.
template <class Table, class T = typename Table::value_type>
Array<T> safe_embedding_lookup_sparse(const Table& table, const RaggedIds& batch,
                                      Combiner combiner = Combiner::mean,
                                      std::optional<std::int64_t> default_id = {},
                                      std::optional<double> max_norm = {}) {
  return embedding_lookup_sparse(table, batch.pruned(default_id), combiner, max_norm);
}

/// Converts the gradient of the result of embedding_lookup to a gradient of the table, with distinct ids, for
/// `push`. With `max_norm`, looks up the rows again, since the gradient of clipping depends on them.
template <class Table, Floating T = typename Table::value_type>
IndexedSlices<T> embedding_lookup_gradient(const Table& table, const Array<std::int64_t>& ids,
                                           const Array<T>& gradient, std::optional<double> max_norm = {}) {
  embedding::check_gradient(table.name(), gradient.shape,
                            embedding::check(table, ids.values, ids.shape, max_norm));
  const std::size_t width = table.width();
  embedding::Distinct distinct(ids.values);
  std::vector<Accumulator<T>> sums(distinct.ids.size() * width);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Accumulator<T>* sum = sums.data() + distinct.locations[i] * width;
    const T* change = gradient.values.data() + i * width;
    for (std::size_t k = 0; k < width; ++k) sum[k] += static_cast<Accumulator<T>>(change[k]);
  }
  return embedding::slices_of(table, std::move(distinct.ids), std::move(sums), max_norm);
}

/// The gradient for embedding_lookup_sparse; for safe_embedding_lookup_sparse, pass
/// `batch.pruned(default_id)`.
template <class Table, Floating T = typename Table::value_type>
IndexedSlices<T> embedding_lookup_sparse_gradient(const Table& table, const RaggedIds& batch,
                                                  const Array<T>& gradient,
                                                  Combiner combiner = Combiner::mean,
                                                  std::optional<double> max_norm = {}) {
  batch.check();
  const std::vector<double> divisors = batch.divisors(combiner);
  embedding::check_gradient(table.name(), gradient.shape,
                            embedding::check(table, batch.ids, batch.batch_shape(), max_norm));
  const std::size_t width = table.width();
  embedding::Distinct distinct(batch.ids);
  std::vector<Accumulator<T>> sums(distinct.ids.size() * width);
  for (std::size_t r = 0; r < divisors.size(); ++r) {
    if (divisors[r] == 0) continue;
    const T* change = gradient.values.data() + r * width;
    for (auto i = static_cast<std::size_t>(batch.row_splits[r]);
         i < static_cast<std::size_t>(batch.row_splits[r + 1]); ++i) {
      const auto scale =
          static_cast<Accumulator<T>>((batch.weights.empty() ? 1 : batch.weights[i]) / divisors[r]);
      Accumulator<T>* sum = sums.data() + distinct.locations[i] * width;
      for (std::size_t k = 0; k < width; ++k) sum[k] += scale * static_cast<Accumulator<T>>(change[k]);
    }
  }
  return embedding::slices_of(table, std::move(distinct.ids), std::move(sums), max_norm);
}

}  // namespace capstan
