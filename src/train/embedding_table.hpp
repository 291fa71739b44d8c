// embedding_table.hpp -- a table of float32, float16, bfloat16 or int8 rows on the ps, which a program reads
// and updates as floats.
//
//   EmbeddingTable<Variable> entities(precision, "entities", Shape{rows, dim}, initializer, options);
//   entities.lookup(ids, rows);    // widens the rows
//   entities.push(ids, gradient);  // narrows the gradient
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/assert.hpp"
#include "capstan/buffer.hpp"
#include "capstan/detail/const_span.hpp"
#include "capstan/dtype.hpp"
#include "capstan/initializers.hpp"
#include "capstan/row_access.hpp"
#include "capstan/serialize.hpp"
#include "protocol/int8_rows.hpp"
#include "train/table_precision.hpp"

namespace capstan::train {

/// Floats that a read fills: directly for float, else through a buffer of the table's dtype T.
template <class T>
class WidenedRows {
 public:
  explicit WidenedRows(std::span<float> out) : out_(out) {
    if constexpr (!std::is_same_v<T, float>) narrow_ = Buffer<T>(out.size());
  }
  /// Receives the rows of the table.
  std::span<T> values() {
    if constexpr (std::is_same_v<T, float>) {
      return out_;
    } else {
      return narrow_;
    }
  }
  /// To be called when the rows have been read.
  void finish() {
    if constexpr (!std::is_same_v<T, float>) {
      std::transform(narrow_.begin(), narrow_.end(), out_.begin(),
                     [](T value) { return static_cast<float>(value); });
    }
  }

 private:
  std::span<float> out_;
  Buffer<T> narrow_;
};

/// A gradient in the table's dtype T. It is rounded to nearest: the error is relative to the gradient,
/// however large the row is, so that small gradients are not lost.
template <class T>
class NarrowedRows {
 public:
  explicit NarrowedRows(std::span<const float> gradient) : gradient_(gradient) {
    if constexpr (!std::is_same_v<T, float>) {
      narrow_ = Buffer<T>(gradient.size());
      std::transform(gradient.begin(), gradient.end(), narrow_.begin(), [](float value) { return T(value); });
    }
  }
  std::span<const T> values() const {
    if constexpr (std::is_same_v<T, float>) {
      return gradient_;
    } else {
      return narrow_;
    }
  }

 private:
  std::span<const float> gradient_;
  Buffer<T> narrow_;
};

/// `Table` is Variable or DynamicTable. A handle, as they are: copies refer to the same table, it may be
/// passed to closures, and its calls have the thread rules and errors of `Table`.
template <template <class> class Table>
class EmbeddingTable {
 public:
  /// A float32 table.
  EmbeddingTable(Table<float> table) : table_(std::move(table)) {}  // NOLINT(google-explicit-constructor)
  /// Creates the table on the ps. `size` is the shape of a Variable, or the row length of a DynamicTable.
  /// Rows that are too short for int8 are float32 instead.
  template <class Size, class Options>
  EmbeddingTable(const TablePrecision& precision, const std::string& name, const Size& size,
                 const Initializer& initial, Options options)
      : table_([&]() -> AnyTable {
          options.int8_rows = precision.int8_rows && elements_of_row(size) >= protocol::kMinInt8Elements;
          options.stochastic_rounding =
              precision.stochastic_rounding && (precision.dtype != DType::float32 || options.int8_rows);
          if (precision.dtype == DType::float16) return Table<float16>(name, size, initial, options);
          if (precision.dtype == DType::bfloat16) return Table<bfloat16>(name, size, initial, options);
          CAPSTAN_ASSERT(precision.dtype == DType::float32);
          return Table<float>(name, size, initial, options);
        }()) {}

  DType dtype() const { return any().dtype(); }
  std::uint64_t rows() const { return any().rows(); }
  std::uint64_t width() const { return any().width(); }

  /// Fills `out` with the rows `ids`, widened to float: ids.size() * width() elements.
  void lookup(ConstSpan<std::int64_t> ids, std::span<float> out) const {
    read(out, [&](const auto& table, auto values) { table.lookup(ids, values); });
  }
  Rows<float> lookup(ConstSpan<std::int64_t> ids) const {
    Rows<float> rows{Buffer<float>(ids.size() * width()), width()};
    lookup(ids, rows.values);
    return rows;
  }
  /// Reads rows from `first_row` on until `out` is full.
  void pull(std::uint64_t first_row, std::span<float> out) const {
    read(out, [&](const auto& table, auto values) { table.pull(first_row, values); });
  }
  /// Rounds the gradient to the table's dtype, to nearest, and pushes it.
  void push(ConstSpan<std::int64_t> ids, std::span<const float> gradient) const {
    visit([&]<class T>(const Table<T>& table) { table.push(ids, NarrowedRows<T>(gradient).values()); });
  }

  /// See Variable::exact. REQUIRES: a table of variables; dynamic tables have no such handle.
  EmbeddingTable exact() const {
    return visit(
        []<class T>(const Table<T>& table) { return EmbeddingTable(std::in_place_type<T>, table.exact()); });
  }

  struct Lookup {
    const EmbeddingTable& table;
    std::span<const std::int64_t> ids;
    std::span<float> out;
  };
  struct Push {
    const EmbeddingTable& table;
    std::span<const std::int64_t> ids;
    std::span<const float> gradient;
  };
  /// Looks up rows of two tables with one round trip to each ps. REQUIRES: tables of one dtype.
  static void lookup_all(const Lookup& a, const Lookup& b) {
    a.table.visit([&]<class T>(const Table<T>& table) {
      WidenedRows<T> rows_a(a.out), rows_b(b.out);
      const RowAccess<T>& other = b.table.template as<T>();
      capstan::lookup_all(capstan::Lookup<T>{table, a.ids, rows_a.values()},
                          capstan::Lookup<T>{other, b.ids, rows_b.values()});
      rows_a.finish();
      rows_b.finish();
    });
  }
  /// Pushes gradients of two tables with one notification per ps. REQUIRES: tables of one dtype.
  static void push_all(const Push& a, const Push& b) {
    a.table.visit([&]<class T>(const Table<T>& table) {
      const NarrowedRows<T> rows_a(a.gradient), rows_b(b.gradient);
      const RowAccess<T>& other = b.table.template as<T>();
      capstan::push_all(capstan::Push<T>{table, a.ids, rows_a.values()},
                        capstan::Push<T>{other, b.ids, rows_b.values()});
    });
  }

  /// Calls `f(table)` with the Table<T> of the table's dtype.
  template <class F>
  decltype(auto) visit(const F& f) const {
    return std::visit(f, table_);
  }
  /// The table itself. REQUIRES: its dtype is that of T.
  template <class T>
  const Table<T>& as() const {
    const auto* table = std::get_if<Table<T>>(&table_);
    CAPSTAN_ASSERT(table != nullptr);
    return *table;
  }

 private:
  friend struct Serializer<EmbeddingTable<Table>>;
  using AnyTable = std::variant<Table<float>, Table<float16>, Table<bfloat16>>;

  template <class T>
  explicit EmbeddingTable(std::in_place_type_t<T>, Table<T> table) : table_(std::move(table)) {}

  static std::uint64_t elements_of_row(const Shape& shape) {
    return std::accumulate(shape.begin() + (shape.empty() ? 0 : 1), shape.end(), std::uint64_t{1},
                           [](std::uint64_t elements, std::int64_t size) {
                             return elements * static_cast<std::uint64_t>(size);
                           });
  }
  static std::uint64_t elements_of_row(std::int64_t dim) { return static_cast<std::uint64_t>(dim); }

  const AnyVariable& any() const {
    return visit([](const auto& table) -> const AnyVariable& { return table; });
  }
  template <class Read>
  void read(std::span<float> out, const Read& read_table) const {
    visit([&]<class T>(const Table<T>& table) {
      WidenedRows<T> rows(out);
      read_table(table, rows.values());
      rows.finish();
    });
  }

  AnyTable table_;
};

}  // namespace capstan::train

namespace capstan {

/// Serialized as the dtype and the table.
template <template <class> class Table>
struct Serializer<train::EmbeddingTable<Table>> {
  using EmbeddingTable = train::EmbeddingTable<Table>;
  static void write(Writer& out, const EmbeddingTable& value) {
    capstan::write(out, value.dtype());
    value.visit([&](const auto& table) { capstan::write(out, table); });
  }
  static EmbeddingTable read(Reader& in) {
    const auto dtype = capstan::read<DType>(in);
    if (dtype == DType::float16) return read_as<float16>(in);
    if (dtype == DType::bfloat16) return read_as<bfloat16>(in);
    return read_as<float>(in);
  }

 private:
  template <class T>
  static EmbeddingTable read_as(Reader& in) {
    return EmbeddingTable(std::in_place_type<T>, capstan::read<Table<T>>(in));
  }
};

}  // namespace capstan
