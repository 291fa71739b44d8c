// table_layout.hpp -- memory of a shard of a dynamic table.
//
// A shard is one range of addresses, reserved for its maximum number of rows; the kernel allocates pages on
// first use. Rows never move. An index maps keys to row numbers. It has 64 sub-indexes that grow one by one,
// so that no growth takes long. One process writes; processes of the same host read at any time.
//
//   header | keys by row | states by row | values by row | slots by row ... | lines of all sub-indexes, by
//   level | admission filter
//
// A sub-index is an open-addressing table of cache lines of five entries, probed line by line. At a
// load of 0.7, 92 % of the keys are in their first line, and a missing key needs 1.5 lines on average
// (simulated).
//
// Before a writer reuses memory that a reader may be reading, it increments the epoch of the sub-index. A
// reader that finds the epoch unchanged after it has copied a row has copied the row of its key.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/key_hash.hpp"
#include "io/hdf5/table_parts.hpp"
#include "protocol/descriptor.hpp"

namespace capstan::protocol {

using capstan::hash_of;
/// Bit that is set in the state of a row that has a key; for the other bits see ps::RowUsage.
using io::kRowInUse;

/// Returns the shard of a key, which the upper half of its hash selects. The lower half selects the line in
/// the shard's index.
constexpr std::uint32_t shard_of_hash(std::uint64_t hash, std::uint64_t shards) noexcept {
  return static_cast<std::uint32_t>((hash >> 32) * shards >> 32);
}

/// Returns the error of a lookup with MissingKeys::error.
inline Error no_such_key(std::int64_t key, const std::string& table) {
  return {Code::not_found, "key " + std::to_string(key) + " is not in table \"" + table + "\""};
}

/// Row of a shard that belongs to no key, to which readers map missing keys.
inline constexpr std::uint32_t kDefaultRow = 0;

/// A line of an index. Bit i of `state` is set while entry i is in use. kOverflowed is set if a key may be in
/// a later line although its home is this line or an earlier one.
struct alignas(64) IndexLine {
  static constexpr std::uint32_t kEntries = 5;
  static constexpr std::uint32_t kAll = (1U << kEntries) - 1;
  static constexpr std::uint32_t kOverflowed = 1U << 31;

  std::int64_t keys[kEntries];
  std::uint32_t rows[kEntries];
  std::uint32_t state;

  /// Returns a bit for each entry that has a key, whether the entry is in use or not.
  std::uint32_t entries_with(std::int64_t key) const noexcept {
    std::uint32_t equal = 0;  // compares all entries: a branch for each would be mispredicted
    for (std::uint32_t i = 0; i < kEntries; ++i)
      equal |= std::uint32_t{__atomic_load_n(&keys[i], __ATOMIC_RELAXED) == key} << i;
    return equal;
  }
};
static_assert(sizeof(IndexLine) == 64);

struct SubIndex {
  std::uint64_t epoch;  // incremented when a row is freed, and when the sub-index has moved to another level
  std::uint64_t level;  // 2^level lines
};

/// Start of a shard. All words are written by the ps only.
struct TableHeader {
  static constexpr std::uint32_t kSubIndexes = 64;

  std::uint64_t rows_end;  // rows [1, rows_end) have been used
  std::uint64_t keys;      // at present
  std::uint64_t inserted;  // this and the next four: since the shard was created or last restored
  std::uint64_t erased;
  std::uint64_t refused;  // keys that were not inserted, because memory or rows were exhausted
  std::uint64_t evicted;
  std::uint64_t not_admitted;  // gradients of keys that were not admitted
  std::uint64_t growths;       // number of times that a sub-index has grown
  // Counters of ps::RowUsage and ps::AdmissionFilter:
  std::uint64_t pushed;       // keys pushed so far, or pushes with TablePolicy::evict_after
  std::uint64_t sampled;      // rows sampled so far for eviction
  std::uint64_t occurrences;  // occurrences of keys that the filter has counted
  std::uint64_t examined;     // row that was examined last for eviction by age
  std::uint64_t reserved[4];
  SubIndex sub_indexes[kSubIndexes];
};

/// Size of a line of the admission filter, and number of keys of the table per line.
inline constexpr std::uint64_t kFilterLineBytes = 64, kKeysPerFilterLine = 16;
/// Largest TableOptions::admit_after: the filter counts to this number.
inline constexpr std::uint32_t kMaxAdmitAfter = 15;

/// Additional rows of a shard that evicts: twice the maximum number of keys of an entry. Keys in excess of
/// the capacity are evicted at the next entry, and their rows are reused only at the entry after that.
inline constexpr std::uint64_t kSpareRows = 16384;

/// Returns the number of rows of each shard of a table for `keys` keys: the mean number of keys per shard,
/// plus six standard deviations since shards differ in their numbers of keys, plus the default row.
std::uint64_t rows_of_table_shard(std::uint64_t keys, std::uint64_t shards) noexcept;

/// Returns the number of rows to save of a shard whose rows below `rows_end` have been used. Rounded up, so
/// that an increment can build on a save after which some rows were added.
std::uint64_t saved_table_rows(std::uint64_t rows_end, std::uint64_t rows) noexcept;

/// Offsets in the memory of a shard. The ps and its clients compute them from the same numbers.
class TableLayout {
 public:
  /// Maximum number of rows of a shard. Its index then needs 30 bits of the lower half of a hash: 6 for the
  /// sub-index and 24 for the line.
  static constexpr std::uint64_t kMaxRows = std::uint64_t{1} << 31;
  static constexpr std::uint64_t kFirstLevel = 4;

  /// `rows`: maximum number of rows, including kDefaultRow; `slot_bytes`: bytes per row of each slot.
  TableLayout(std::uint64_t rows, std::uint64_t row_bytes, const std::vector<std::uint64_t>& slot_bytes);
  /// Returns the layout of a shard of a dynamic table.
  static TableLayout of(std::uint64_t shard_rows, std::uint64_t width, DType dtype, const RowStorage& storage,
                        OptimizerKind optimizer);

  std::uint64_t rows() const noexcept { return rows_; }
  std::uint64_t keys() const noexcept { return keys_; }
  std::uint64_t states() const noexcept { return states_; }
  std::uint64_t values() const noexcept { return values_; }
  std::uint64_t slot(std::size_t number) const { return slots_.at(number); }
  /// The lines of all sub-indexes at one level are adjacent, so that they share huge pages, which each
  /// sub-index alone could not fill. A level of 2 MiB or more begins at a huge page.
  std::uint64_t lines(std::uint64_t sub_index, std::uint64_t level) const noexcept {
    const std::uint64_t bytes = sizeof(IndexLine) << level;
    return index_ + (TableHeader::kSubIndexes + sub_index) * bytes;
  }
  std::uint64_t last_level() const noexcept { return last_level_; }
  std::uint64_t filter() const noexcept { return index_ + index_bytes_; }
  std::uint64_t filter_lines() const noexcept { return std::bit_ceil(rows_ / kKeysPerFilterLine + 1); }
  /// Bytes of the complete range.
  std::uint64_t bytes() const noexcept { return filter() + filter_lines() * kFilterLineBytes; }

 private:
  std::uint64_t rows_;
  std::uint64_t keys_;
  std::uint64_t states_;
  std::uint64_t values_;
  std::vector<std::uint64_t> slots_;
  std::uint64_t index_;
  std::uint64_t last_level_;
  std::uint64_t index_bytes_;
};

}  // namespace capstan::protocol
