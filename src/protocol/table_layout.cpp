// table_layout.cpp -- offsets in a shard of a dynamic table.
#include "protocol/table_layout.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "transport/memory/reserved_memory.hpp"

namespace capstan::protocol {
namespace {

/// Arrays are aligned to huge pages, so that each array can use huge pages.
constexpr std::uint64_t kAlignment = transport::kHugePage;
/// Maximum mean load of the index at its last level, with all rows in use. It is well below the load of a
/// full sub-index, because the sub-indexes have different numbers of keys.
constexpr double kLoad = 0.5;

constexpr std::uint64_t aligned(std::uint64_t bytes) noexcept {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

std::uint64_t rows_of_table_shard(std::uint64_t keys, std::uint64_t shards) noexcept {
  if (shards == 1) return keys + 1;
  const std::uint64_t mean = keys / shards + 1;
  return std::min(keys, mean + static_cast<std::uint64_t>(6 * std::sqrt(static_cast<double>(mean)))) + 1;
}

std::uint64_t saved_table_rows(std::uint64_t rows_end, std::uint64_t rows) noexcept {
  const std::uint64_t step = std::max<std::uint64_t>(1024, std::bit_floor(rows_end) / 8);
  return std::min(rows, (rows_end + step - 1) / step * step);
}

TableLayout::TableLayout(std::uint64_t rows, std::uint64_t row_bytes,
                         const std::vector<std::uint64_t>& slot_bytes)
    : rows_(rows) {
  keys_ = aligned(sizeof(TableHeader));
  states_ = keys_ + aligned(rows * sizeof(std::int64_t));
  values_ = states_ + aligned(rows * sizeof(std::uint32_t));
  std::uint64_t end = values_ + aligned(rows * row_bytes);
  for (const std::uint64_t bytes : slot_bytes) {
    slots_.push_back(end);
    end += aligned(rows * bytes);
  }
  index_ = end;
  last_level_ = kFirstLevel;
  const double wanted = static_cast<double>(rows) / TableHeader::kSubIndexes / IndexLine::kEntries / kLoad;
  while (static_cast<double>(std::uint64_t{1} << last_level_) < wanted) ++last_level_;
  index_bytes_ = aligned(lines(0, last_level_ + 1) - index_);
}

TableLayout TableLayout::of(std::uint64_t shard_rows, std::uint64_t width, DType dtype,
                            const RowStorage& storage, OptimizerKind optimizer) {
  const std::uint64_t slot = width * size_of(slot_dtype(dtype));
  return {shard_rows, stored_row_bytes(dtype, width, storage),
          std::vector<std::uint64_t>(slots_of(optimizer).size(), slot)};
}

}  // namespace capstan::protocol
