// dynamic_table.hpp -- tables whose rows are named by arbitrary keys and are added on first use.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "capstan/detail/export.hpp"
#include "capstan/hash_key.hpp"
#include "capstan/initializers.hpp"
#include "capstan/row_access.hpp"
#include "capstan/table_options.hpp"

namespace capstan {

/// Contents of a dynamic table. Counts begin at its creation, or at its last restore from a checkpoint.
struct TableStatistics {
  std::uint64_t keys = 0;
  std::uint64_t max_keys = 0;  ///< of all ps together
  std::uint64_t inserted = 0;
  std::uint64_t erased = 0;
  /// Keys that were not added because a ps had no memory or no row left. A key counts once per push.
  std::uint64_t refused = 0;
  std::uint64_t evicted = 0;       ///< removed because the table was full, or by TableOptions::evict_after
  std::uint64_t not_admitted = 0;  ///< gradients of keys that were not admitted
  std::uint64_t growths = 0;       ///< times that a part of the index grew
  std::uint64_t row_bytes = 0;     ///< allocated for keys, values and slots
  std::uint64_t index_bytes = 0;   ///< allocated for the index
  /// Average number of cache lines of the index that a search for an existing key reads, over a sample of at
  /// most 2,048 keys per ps; 0 without keys.
  double probes = 0;
};

namespace detail {

CAPSTAN_API std::shared_ptr<const strategy::BoundVariable> create_table(const std::string& name, DType dtype,
                                                                        std::int64_t dim,
                                                                        const Initializer& initial,
                                                                        const TableOptions& options);

/// The calls of DynamicTable that do not depend on its dtype.
struct CAPSTAN_API TableCalls {
  using Keys = std::span<const std::int64_t>;
  /// Keys of some rows of a shard.
  struct Listed {
    std::uint64_t end_row = 0;  // no row from here on has a key
    std::vector<std::int64_t> keys;
  };

  const strategy::BoundVariable& table;

  void lookup_or_insert(Keys keys, void* out, std::size_t elements) const;
  /// Looks up rows without rounding by communication_dtype or int8_lookups.
  void lookup_exactly(Keys keys, void* out, std::size_t elements) const;
  void insert(Keys keys) const;
  void erase(Keys keys) const;
  void assign(Keys keys, const void* values, std::size_t elements) const;
  /// As assign. In a closure that runs again, also applies what an earlier run may have applied.
  void assign_in_every_run(Keys keys, const void* values, std::size_t elements) const;
  void set_default_row(const void* values, std::size_t elements) const;
  std::vector<std::uint8_t> contains(Keys keys) const;
  TableStatistics statistics() const;
  Listed list(std::uint32_t shard, std::uint64_t first_row, std::uint64_t rows) const;
  MissingKeys missing() const;
};

}  // namespace detail

/// A table of rows of `dim` elements, each named by a key: any 64-bit integer, or a text by hash_key(). Made
/// on the coordinator in the scope of a strategy, with one shard on each ps, which holds the keys whose hash
/// selects it. It may be passed to closures as an argument, and is used by the thread that runs the program
/// or the closure.
///
/// The first push to a key adds its row, with the initializer's values; TableOptions::missing decides what a
/// lookup returns before that. Rows and keys take memory when they are added, and a removed key's row is used
/// again. If a ps's share of max_keys is in use, TableOptions::when_full decides what happens. If the memory
/// of a ps is exhausted, pushes to new keys are dropped and counted (TableStatistics::refused), and all other
/// calls work.
///
/// Lookups on the host of a ps read its memory while it adds, moves and removes keys; they never return the
/// row of another key. Functions for embeddings (capstan/embedding.hpp) accept tables.
template <class T>
class DynamicTable : public RowAccess<T> {
 public:
  using element_type = Element<T>;

  /// `initial` must not depend on the shape. Throws Error: failed_precondition on a rank other than the
  /// coordinator; invalid_argument for a `dim` or max_keys below 1, for more than 2^31 keys on one ps, and
  /// for parameters and names as Variable does; already_exists for a name that is taken; unimplemented for an
  /// initializer that depends on the shape; resource_exhausted if a ps cannot reserve addresses.
  DynamicTable(std::string name, std::int64_t dim, const Initializer& initial = {},
               const TableOptions& options = {})
      : RowAccess<T>(detail::create_table(name, dtype_of<T>, dim, initial, options)) {}

  /// Number of keys. Blocks for a round trip to each ps, as do the next two calls.
  std::uint64_t size() const { return statistics().keys; }
  TableStatistics statistics() const { return calls().statistics(); }
  /// Returns 1 for each key that exists, 0 for the others.
  std::vector<std::uint8_t> contains(ConstSpan<std::int64_t> keys) const { return calls().contains(keys); }
  MissingKeys missing() const { return calls().missing(); }

  /// Looks up rows as with MissingKeys::initial, and adds the keys that do not exist. Returns before they
  /// have been added; see flush().
  Rows<T> lookup_or_insert(ConstSpan<std::int64_t> keys) const {
    Rows<T> rows{Buffer<element_type>(keys.size() * this->width()), this->width()};
    calls().lookup_or_insert(keys, rows.values.data(), rows.values.size());
    return rows;
  }
  /// As above, into `out`, which must have keys.size() * width() elements.
  void lookup_or_insert(ConstSpan<std::int64_t> keys, std::span<element_type> out) const {
    calls().lookup_or_insert(keys, out.data(), out.size());
  }

  // Each of the following calls takes effect after this rank's earlier pushes, and blocks until then.

  /// Adds keys that do not exist, with the initializer's values.
  void insert(ConstSpan<std::int64_t> keys) const { calls().insert(keys); }
  /// Removes keys with their rows and slots; ignores those that do not exist.
  void erase(ConstSpan<std::int64_t> keys) const { calls().erase(keys); }
  /// Sets the rows of keys, which it adds if they do not exist. Does not change slots of the optimizer.
  void assign(ConstSpan<std::int64_t> keys, ConstSpan<element_type> values) const {
    calls().assign(keys, values.data(), values.size());
  }
  /// Sets the row that lookups with MissingKeys::default_row return for missing keys.
  void set_default_row(ConstSpan<element_type> values) const {
    calls().set_default_row(values.data(), values.size());
  }

  /// Calls `callback(keys, rows)` for all keys, some at a time, in no particular order; `rows` is a Rows<T>.
  /// Keys that are added or removed meanwhile may be left out. Rows are exact, whatever communication_dtype
  /// and int8_lookups are.
  template <std::invocable<std::span<const std::int64_t>, const Rows<T>&> Callback>
  void export_rows(Callback&& callback) const {
    constexpr std::uint64_t kRows = 65536;
    for (std::uint32_t shard = 0; shard < this->shards().size(); ++shard) {
      std::uint64_t end = 1;
      for (std::uint64_t row = 0; row < end; row += kRows) {
        const auto listed = calls().list(shard, row, kRows);
        end = listed.end_row;
        if (listed.keys.empty()) continue;
        Rows<T> rows{Buffer<element_type>(listed.keys.size() * this->width()), this->width()};
        calls().lookup_exactly(listed.keys, rows.values.data(), rows.values.size());
        callback(std::span(listed.keys), rows);
      }
    }
  }

  /// Removes the keys for which `predicate(key, row)` returns true; `row` is a span of width() elements.
  /// Looks up every row on this rank, as export_rows does. Pushes to a key that arrive between its lookup and
  /// its removal are lost. Returns the number of keys passed to erase().
  template <std::predicate<std::int64_t, std::span<const element_type>> Predicate>
  std::uint64_t erase_if(Predicate&& predicate) const {
    std::uint64_t removed = 0;
    const auto width = static_cast<std::size_t>(this->width());
    export_rows([&](std::span<const std::int64_t> keys, const Rows<T>& rows) {
      std::vector<std::int64_t> found;
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (predicate(keys[i], std::span(rows.values).subspan(i * width, width))) found.push_back(keys[i]);
      }
      if (!found.empty()) erase(found);
      removed += found.size();
    });
    return removed;
  }

  /// Accepts every id, since any integer is a key. Called by embedding lookups.
  void check_ids(std::span<const std::int64_t> /*ids*/) const noexcept {}

 private:
  friend struct Serializer<DynamicTable<T>>;
  DynamicTable() = default;
  detail::TableCalls calls() const { return {*this->bound_}; }
};

/// A table is serialized as its number; the receiving rank binds it to its own connections.
template <class T>
struct Serializer<DynamicTable<T>> {
  static void write(Writer& out, const DynamicTable<T>& table) { capstan::write(out, table.to_send()); }
  static DynamicTable<T> read(Reader& in) {
    DynamicTable<T> table;
    table.bind(capstan::read<typename DynamicTable<T>::Sent>(in), dtype_of<T>);
    return table;
  }
};

}  // namespace capstan
