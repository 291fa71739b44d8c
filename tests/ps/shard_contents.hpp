// shard_contents.hpp -- the arrays of a shard as a checkpoint would have them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "ps/durability/store_snapshot.hpp"
#include "ps/shard/store.hpp"

namespace capstan::ps {

/// Values, slots and, of a dynamic table, keys and states.
struct ShardContents {
  struct Array {
    std::string name;
    std::uint64_t row_bytes;
    std::vector<std::byte> bytes;
  };
  std::uint64_t rows = 0;
  std::vector<Array> arrays;

  /// Returns the bytes of a row in the first `count` arrays, one after the other.
  std::vector<std::byte> row(std::uint64_t number, std::size_t count) const {
    std::vector<std::byte> out;
    for (std::size_t i = 0; i < count; ++i) {
      const std::byte* const first = arrays.at(i).bytes.data() + number * arrays[i].row_bytes;
      out.insert(out.end(), first, first + arrays[i].row_bytes);
    }
    return out;
  }
};

/// Returns the shards of a store by the name of their variable in a checkpoint.
inline std::unordered_map<std::string, ShardContents> shard_contents(Store& store) {
  StoreSnapshot snapshot(store);
  EXPECT_TRUE(snapshot.advance());
  std::unordered_map<std::string, ShardContents> out;
  const auto files = snapshot.parts(1);
  for (const io::PartArray& array : files.at(0)) {
    ShardContents& shard = out[array.variable];
    std::uint64_t row_bytes = size_of(array.dtype);
    for (std::size_t i = 1; i < array.shape.size(); ++i) row_bytes *= array.shape[i];
    std::vector<std::byte> bytes(array.rows * row_bytes);
    array.read(0, array.rows, bytes.data());
    shard.rows = array.rows;
    shard.arrays.push_back({array.component, row_bytes, std::move(bytes)});
  }
  return out;
}

/// Returns the rows of a shard of a dynamic table by key: values and slots, with `with_states` also the
/// state.
inline std::unordered_map<std::int64_t, std::vector<std::byte>> rows_by_key(const ShardContents& table,
                                                                            bool with_states = false) {
  const std::size_t keys = table.arrays.size() - 2, states = keys + 1;
  EXPECT_EQ(table.arrays[keys].name, "table_key");
  EXPECT_EQ(table.arrays[states].name, "table_state");
  std::unordered_map<std::int64_t, std::vector<std::byte>> out;
  for (std::uint64_t row = 0; row < table.rows; ++row) {
    std::int64_t key = 0;
    std::uint32_t state = 0;
    std::memcpy(&key, table.arrays[keys].bytes.data() + row * sizeof key, sizeof key);
    std::memcpy(&state, table.arrays[states].bytes.data() + row * sizeof state, sizeof state);
    if ((state & protocol::kRowInUse) == 0) continue;
    std::vector<std::byte> bytes = table.row(row, keys);
    if (with_states) {
      const auto* const first = reinterpret_cast<const std::byte*>(&state);
      bytes.insert(bytes.end(), first, first + sizeof state);
    }
    EXPECT_TRUE(out.emplace(key, std::move(bytes)).second) << "key " << key << " has two rows";
  }
  return out;
}

}  // namespace capstan::ps
