// sum_of_squares.hpp -- the sum of the squares of a table's values, for the L2 penalty. Runs on the
// coordinator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "train/embedding_table.hpp"
#include "train/sparse/closures.hpp"

namespace capstan::train {

template <class T>
double sum_of_squares(std::span<const T> values) {
  double sum = 0;
  for (const T value : values) {
    const auto x = static_cast<double>(static_cast<float>(value));
    sum += x * x;
  }
  return sum;
}

/// Returns the sum of the squares in columns `begin` to `end` - 1 of the rows that occur in the training
/// data. Other rows keep their initial values. A bias behind the rows that are counted has no penalty.
inline double sum_of_squares(const EmbeddingTable<Variable>& table, const Variable<std::int32_t>& occurrences,
                             std::size_t begin, std::size_t end) {
  constexpr std::uint64_t kBlockRows = 65536;
  std::vector<float> block;
  std::vector<std::int32_t> counts;
  const std::uint64_t rows = occurrences.rows(), width = table.width();
  double sum = 0;
  for (std::uint64_t first = 0; first < rows; first += kBlockRows) {
    const std::uint64_t size = std::min(kBlockRows, rows - first);
    block.resize(size * width);
    counts.resize(size);
    table.pull(first, block);
    occurrences.pull(first, counts);
    for (std::uint64_t i = 0; i < size; ++i) {
      if (counts[i] > 0)
        sum += sum_of_squares(std::span<const float>(block).subspan(i * width + begin, end - begin));
    }
  }
  return sum;
}
inline double sum_of_squares(const EmbeddingTable<Variable>& table,
                             const Variable<std::int32_t>& occurrences) {
  return sum_of_squares(table, occurrences, 0, table.width());
}
/// Without the bias.
inline double sum_of_squares(const EmbeddingTable<DynamicTable>& table, std::size_t begin, std::size_t end) {
  double sum = 0;
  table.visit([&]<class T>(const DynamicTable<T>& typed) {
    typed.export_rows([&](std::span<const std::int64_t> keys, const Rows<T>& rows) {
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (keys[i] != kBiasKey) sum += sum_of_squares(rows[i].subspan(begin, end - begin));
      }
    });
  });
  return sum;
}

inline double sum_of_squares(const EmbeddingTable<DynamicTable>& table) {
  return sum_of_squares(table, 0, table.width());
}

}  // namespace capstan::train
