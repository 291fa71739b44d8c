// shard_contents.hpp -- the arrays of a shard as a checkpoint would have them.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <bit>
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

  /// Returns an element of an array whose rows have the size of T.
  template <class T>
  T at(std::size_t array, std::uint64_t row) const {
    T out;
    std::memcpy(&out, arrays[array].bytes.data() + row * sizeof out, sizeof out);
    return out;
  }
  /// Of a dynamic table: calls `f` with each key and its row. Its last two arrays are keys and states.
  template <class F>
  void for_each_key(const F& f) const {
    const std::size_t keys = arrays.size() - 2, states = keys + 1;
    ASSERT_EQ(arrays[keys].name, "table_key");
    ASSERT_EQ(arrays[states].name, "table_state");
    for (std::uint64_t row = 0; row < rows; ++row) {
      if ((at<std::uint32_t>(states, row) & protocol::kRowInUse) != 0) f(at<std::int64_t>(keys, row), row);
    }
  }
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
  std::unordered_map<std::int64_t, std::vector<std::byte>> out;
  const std::size_t states = table.arrays.size() - 1;
  table.for_each_key([&](std::int64_t key, std::uint64_t row) {
    std::vector<std::byte> bytes = table.row(row, states - 1);
    if (with_states) {
      const auto state = std::bit_cast<std::array<std::byte, 4>>(table.at<std::uint32_t>(states, row));
      bytes.insert(bytes.end(), state.begin(), state.end());
    }
    EXPECT_TRUE(out.emplace(key, std::move(bytes)).second) << "key " << key << " has two rows";
  });
  return out;
}

}  // namespace capstan::ps
