// static_hash_table.hpp -- StaticHashTable: an immutable map, such as words to numbers, local to each worker.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capstan/array.hpp"
#include "capstan/detail/per_worker.hpp"
#include "capstan/detail/remote_function.hpp"

namespace capstan {

namespace detail {

template <class K, class V>
class HashTable {
 public:
  HashTable(std::string table, const std::vector<K>& keys, const std::vector<Element<V>>& values,
            Element<V> otherwise)
      : name(std::move(table)), default_value(std::move(otherwise)) {
    if (keys.size() != values.size()) {
      throw Error(Code::invalid_argument, "table \"" + name + "\": found " + std::to_string(keys.size()) +
                                              " keys and " + std::to_string(values.size()) +
                                              " values, expected one value per key");
    }
    entries.reserve(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto [entry, added] = entries.emplace(keys[i], values[i]);
      if (!added && !(entry->second == values[i])) {
        throw Error(Code::invalid_argument, "table \"" + name + "\": key " + std::to_string(i) +
                                                " repeats an earlier key with another value");
      }
    }
  }
  std::string name;
  std::unordered_map<K, Element<V>> entries;
  Element<V> default_value;
};

template <class K, class V>
HashTable<K, V> make_hash_table(std::string name, const std::vector<K>& keys,
                                const std::vector<Element<V>>& values, const Element<V>& default_value) {
  return HashTable<K, V>(std::move(name), keys, values, default_value);
}

}  // namespace detail

/// An immutable table. If created in a strategy's scope, it can be passed to closures; each worker creates
/// its own copy when a closure first uses it there, and lookups send no message. Keys and values are sent to
/// a worker once. If created outside of a scope, it exists in this process only, and passing it to a closure
/// throws Error(failed_precondition). Lookups are thread-safe.
///
/// K: an integer, std::string, or another serializable type with a std::hash; V: any serializable type.
template <class K, class V>
class StaticHashTable {
 public:
  /// Value i belongs to key i; lookups of other keys return `default_value`. Throws Error(invalid_argument)
  /// if the numbers of keys and values differ, or a key is repeated with a different value.
  StaticHashTable(std::string name, const std::vector<K>& keys, const std::vector<Element<V>>& values,
                  Element<V> default_value)
      : table_(std::make_shared<const detail::HashTable<K, V>>(name, keys, values, default_value)) {
    if (!detail::in_scope()) return;
    constexpr auto kMake = &detail::make_hash_table<K, V>;
    handle_ = detail::add_worker_resource("table", name, detail::RegisteredMaker<kMake>::number,
                                          detail::pack_arguments<kMake>(name, keys, values, default_value));
  }

  const std::string& name() const { return table_->name; }
  /// Number of distinct keys.
  std::int64_t size() const { return static_cast<std::int64_t>(table_->entries.size()); }
  const Element<V>& default_value() const { return table_->default_value; }

  const Element<V>& lookup(const K& key) const {
    const auto found = table_->entries.find(key);
    return found == table_->entries.end() ? table_->default_value : found->second;
  }
  std::vector<Element<V>> lookup(std::span<const K> keys) const {
    std::vector<Element<V>> values;
    values.reserve(keys.size());
    for (const K& key : keys) values.push_back(lookup(key));
    return values;
  }
  /// Returns values in the shape of `keys`.
  Array<V> lookup(const Array<K>& keys) const {
    return Array<V>(keys.shape, lookup(std::span<const K>(keys.values)));
  }

 private:
  friend struct Serializer<StaticHashTable<K, V>>;
  StaticHashTable() = default;

  detail::ResourceHandle handle_;  // empty if the table is in this process only
  std::shared_ptr<const detail::HashTable<K, V>> table_;
};

template <class K, class V>
struct Serializer<StaticHashTable<K, V>> {
  static void write(Writer& out, const StaticHashTable<K, V>& table) {
    if (table.handle_.id() == 0) {
      throw Error(Code::failed_precondition, "table \"" + table.name() +
                                                 "\" was created outside of a strategy's scope and exists "
                                                 "in this process only; create it in the scope to use it in "
                                                 "scheduled functions");
    }
    capstan::write(out, table.handle_);
  }
  static StaticHashTable<K, V> read(Reader& in) {
    StaticHashTable<K, V> table;
    table.handle_ = capstan::read<detail::ResourceHandle>(in);
    table.table_ =
        std::static_pointer_cast<const detail::HashTable<K, V>>(detail::worker_resource(table.handle_));
    return table;
  }
};

}  // namespace capstan
