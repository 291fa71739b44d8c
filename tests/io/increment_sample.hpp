// increment_sample.hpp -- selects changed rows of complete arrays, as a ps writes them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "io/hdf5/checkpoint_types.hpp"
#include "io/hdf5/layout.hpp"

namespace capstan::io {

/// Row numbers, strictly increasing, by variable.
using Changes = std::map<std::string, std::vector<std::uint64_t>>;

/// Returns the changed rows of each variable's arrays, and their row numbers. `memory` owns the data.
inline std::vector<PartArray> only_changed(const std::vector<PartArray>& whole, const Changes& changes,
                                           std::vector<std::vector<char>>& memory) {
  std::vector<PartArray> arrays;
  const auto add = [&](PartArray array, std::vector<char> bytes) {
    bytes.push_back(0);  // so that data() is not null
    memory.push_back(std::move(bytes));
    array.data = memory.back().data();
    arrays.push_back(std::move(array));
  };
  for (PartArray array : whole) {
    std::vector<std::uint64_t> rows;
    for (const std::uint64_t row : changes.at(array.variable)) {
      if (row >= array.first_row && row < array.first_row + array.rows) rows.push_back(row);
    }
    array.changed = rows.size();
    if (array.component == kValue) {
      const char* raw = reinterpret_cast<const char*>(rows.data());
      add({.variable = array.variable,
           .component = kChangedRows,
           .dtype = DType::int64,
           .shape = {array.shape[0]},
           .first_row = array.first_row,
           .rows = array.rows,
           .changed = rows.size()},
          {raw, raw + rows.size() * sizeof(std::uint64_t)});
    }
    const std::uint64_t bytes_a_row = row_bytes(array.shape, array.dtype);
    std::vector<char> bytes;
    for (const std::uint64_t row : rows) {
      const char* from = static_cast<const char*>(array.data) + (row - array.first_row) * bytes_a_row;
      bytes.insert(bytes.end(), from, from + bytes_a_row);
    }
    add(std::move(array), std::move(bytes));
  }
  return arrays;
}

}  // namespace capstan::io
