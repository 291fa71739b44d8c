// table_layout.cpp -- offsets in a shard of a dynamic table, and epochs of a read.
#include "protocol/table_layout.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace capstan::protocol {
namespace {

/// Arrays begin at huge pages, so that each can use them.
constexpr std::uint64_t kAlignment = std::uint64_t{2} << 20;
/// The index has lines for this fraction of the rows at its last level, since sub-indexes differ in size.
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

std::string table_part(const std::string& table, std::uint64_t shard) {
  return table + "/part_" + std::to_string(shard);
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
  index_bytes_ =
      aligned(((std::uint64_t{2} << last_level_) - (std::uint64_t{1} << kFirstLevel)) * sizeof(IndexLine));
}

TableLayout TableLayout::of(std::uint64_t shard_rows, std::uint64_t width, DType dtype,
                            OptimizerKind optimizer) {
  const std::uint64_t slot = width * size_of(slot_dtype(dtype));
  return {shard_rows, width * size_of(dtype), std::vector<std::uint64_t>(slots_of(optimizer).size(), slot)};
}

void TableReader::Epochs::begin(const TableReader& reader) noexcept {
  changed_any_ = false;
  const TableHeader& header = reader.header();
  for (std::uint32_t s = 0; s < TableHeader::kSubIndexes; ++s) {
    const SubIndex& of = header.sub_indexes[s];
    const std::uint64_t epoch = __atomic_load_n(&of.epoch, __ATOMIC_ACQUIRE);
    const std::uint64_t level = __atomic_load_n(&of.level, __ATOMIC_ACQUIRE);
    const auto* first = reinterpret_cast<const IndexLine*>(reader.memory_ + reader.layout_->lines(s, level));
    lines_[s] = {first, (std::uint64_t{1} << level) - 1, epoch};
  }
}

bool TableReader::Epochs::check(const TableReader& reader) noexcept {
  changed_any_ = false;
  for (std::uint32_t s = 0; s < TableHeader::kSubIndexes; ++s) {
    changed_[s] = __atomic_load_n(&reader.header().sub_indexes[s].epoch, __ATOMIC_RELAXED) != lines_[s].epoch;
    changed_any_ |= changed_[s];
  }
  return !changed_any_;
}

}  // namespace capstan::protocol
