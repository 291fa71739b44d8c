// sum_of_squares.hpp -- sums of the squares of a table's values, for the L2 penalty. Runs on the
// coordinator.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "train/embedding_table.hpp"
#include "train/sparse/closures.hpp"

namespace capstan::train {

/// Adds the square of each element of a row to the sum of its column.
template <class T>
void add_squares(std::span<const T> row, std::vector<double>& sums) {
  for (std::size_t column = 0; column < row.size(); ++column) {
    const auto x = static_cast<double>(static_cast<float>(row[column]));
    sums[column] += x * x;
  }
}

/// Returns the sums of the squares by column, of the rows that occur in the training data. Other rows keep
/// their initial values. A bias behind the rows that are counted has no penalty.
inline std::vector<double> squares_by_column(const EmbeddingTable<Variable>& table,
                                             const Variable<std::int32_t>& occurrences) {
  constexpr std::uint64_t kBlockRows = 65536;
  std::vector<float> block;
  std::vector<std::int32_t> counts;
  const std::uint64_t rows = occurrences.rows(), width = table.width();
  std::vector<double> sums(width, 0);
  for (std::uint64_t first = 0; first < rows; first += kBlockRows) {
    const std::uint64_t size = std::min(kBlockRows, rows - first);
    block.resize(size * width);
    counts.resize(size);
    table.pull(first, block);
    occurrences.pull(first, counts);
    for (std::uint64_t i = 0; i < size; ++i) {
      if (counts[i] > 0) add_squares(std::span<const float>(block).subspan(i * width, width), sums);
    }
  }
  return sums;
}
/// As above. All rows of the table but the bias occur in the data.
inline std::vector<double> squares_by_column(const EmbeddingTable<DynamicTable>& table,
                                             const DynamicTable<std::int32_t>& /*occurrences*/) {
  std::vector<double> sums(table.width(), 0);
  table.visit([&]<class T>(const DynamicTable<T>& typed) {
    typed.export_rows([&](std::span<const std::int64_t> keys, const Rows<T>& rows) {
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (keys[i] != kBiasKey) add_squares(std::span<const T>(rows[i]), sums);
      }
    });
  });
  return sums;
}

/// Returns the sum of the squares of all columns.
template <template <class> class Table>
double sum_of_squares(const EmbeddingTable<Table>& table, const Table<std::int32_t>& occurrences) {
  const std::vector<double> sums = squares_by_column(table, occurrences);
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace capstan::train
