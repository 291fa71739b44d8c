// table_layout.hpp -- memory of a shard of a dynamic table, and how readers find a key in it.
//
// A shard is one range of addresses, reserved for its maximum number of rows; the kernel allocates pages on
// first use. Rows never move. An index maps keys to row numbers. It has 64 sub-indexes that grow one by one,
// so that no growth takes long. One process writes; processes of the same host read at any time.
//
//   header | keys by row | states by row | values by row | slots by row ... | levels of each sub-index |
//   admission filter
//
// A sub-index is an open-addressing table of cache lines of five entries, probed line by line. At a
// load of 0.7, 92 % of the keys are in their first line, and a missing key needs 1.5 lines on average
// (simulated).
//
// Before a writer reuses memory that a reader may be reading, it increments the epoch of the sub-index. A
// reader that finds the epoch unchanged after it has copied a row has copied the row of its key.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "protocol/descriptor.hpp"

namespace capstan::protocol {

/// The finalizer of SplitMix64: variant 13 of D. Stafford, "Better bit mixing", 2011. A bijection.
constexpr std::uint64_t hash_of(std::int64_t key) noexcept {
  auto x = static_cast<std::uint64_t>(key);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}
/// Number of the shard of a key: by the upper half of its hash. The lower half selects the place in the
/// shard.
constexpr std::uint32_t shard_of_hash(std::uint64_t hash, std::uint64_t shards) noexcept {
  return static_cast<std::uint32_t>((hash >> 32) * shards >> 32);
}

/// Returns the error of a lookup with MissingKeys::error.
inline Error no_such_key(std::int64_t key, const std::string& table) {
  return {Code::not_found, "key " + std::to_string(key) + " is not in table \"" + table + "\""};
}

/// Row of a shard that belongs to no key, to which readers map missing keys.
inline constexpr std::uint32_t kDefaultRow = 0;

/// A line of an index. Bit i of `state` is set while entry i is in use; kOverflowed, if a key may be in a
/// later line although its home is this line or an earlier one.
struct alignas(64) IndexLine {
  static constexpr std::uint32_t kEntries = 5;
  static constexpr std::uint32_t kAll = (1U << kEntries) - 1;
  static constexpr std::uint32_t kOverflowed = 1U << 31;

  std::int64_t keys[kEntries];
  std::uint32_t rows[kEntries];
  std::uint32_t state;
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
  std::uint64_t inserted;  // since the creation of the shard, or its last restore; as the next three
  std::uint64_t erased;
  std::uint64_t refused;  // keys that were not inserted, because memory or rows were exhausted
  std::uint64_t evicted;
  std::uint64_t not_admitted;  // gradients of keys that were not admitted
  std::uint64_t growths;       // of sub-indexes
  // Of ps::RowUsage and ps::AdmissionFilter:
  std::uint64_t pushed;       // keys, if rows are evicted
  std::uint64_t sampled;      // rows, for eviction
  std::uint64_t occurrences;  // of keys that the filter has counted
  std::uint64_t reserved[5];
  SubIndex sub_indexes[kSubIndexes];
};

/// In the state of a row that has a key; for the other bits see ps::RowUsage.
inline constexpr std::uint32_t kRowInUse = 1U << 31;

/// Size of a line of the admission filter, and number of keys for which a table has one.
inline constexpr std::uint64_t kFilterLineBytes = 64, kKeysPerFilterLine = 16;
/// Largest TableOptions::admit_after: the filter counts to this number.
inline constexpr std::uint32_t kMostAdmitAfter = 15;

/// Additional rows of a shard that evicts. Rows are freed after the entry that needed them, and those that an
/// entry frees are used after it: twice the most keys of an entry in total.
inline constexpr std::uint64_t kSpareRows = 16384;

/// Returns the number of rows of each shard of a table for `keys` keys: their mean number in a shard, six
/// standard deviations, since hashes are not evenly distributed, and the default row.
std::uint64_t rows_of_table_shard(std::uint64_t keys, std::uint64_t shards) noexcept;

// A checkpoint has each shard of a table as a variable table_part(name, shard): the rows up to
// saved_table_rows, and besides the slots of the optimizer two arrays.

/// Keys by row: int64.
inline constexpr const char* kTableKeys = "table_key";
/// States by row: int32, with kRowInUse for rows that have a key.
inline constexpr const char* kTableStates = "table_state";
std::string table_part(const std::string& table, std::uint64_t shard);
/// Returns the number of rows that are saved of a shard whose rows below `rows_end` have been used: somewhat
/// more, so that an increment can build on a save after which some rows were added.
std::uint64_t saved_table_rows(std::uint64_t rows_end, std::uint64_t rows) noexcept;

/// Offsets in the memory of a shard. The ps and its clients compute them from the same numbers.
class TableLayout {
 public:
  /// Most rows of a shard, at which the index of a row needs 26 bits of the lower half of a hash.
  static constexpr std::uint64_t kMostRows = std::uint64_t{1} << 31;
  static constexpr std::uint64_t kFirstLevel = 4;

  /// `rows`: maximum number of rows, including kDefaultRow; `slot_bytes`: bytes per row of each slot.
  TableLayout(std::uint64_t rows, std::uint64_t row_bytes, const std::vector<std::uint64_t>& slot_bytes);
  /// The layout of a shard of this variable. REQUIRES: variable.table.
  static TableLayout of(std::uint64_t shard_rows, std::uint64_t width, DType dtype, OptimizerKind optimizer);

  std::uint64_t rows() const noexcept { return rows_; }
  std::uint64_t keys() const noexcept { return keys_; }
  std::uint64_t states() const noexcept { return states_; }
  std::uint64_t values() const noexcept { return values_; }
  std::uint64_t slot(std::size_t number) const { return slots_.at(number); }
  std::uint64_t lines(std::uint64_t sub_index, std::uint64_t level) const noexcept {
    const std::uint64_t earlier = (std::uint64_t{1} << level) - (std::uint64_t{1} << kFirstLevel);
    return index_ + sub_index * index_bytes_ + earlier * sizeof(IndexLine);
  }
  std::uint64_t last_level() const noexcept { return last_level_; }
  std::uint64_t filter() const noexcept { return index_ + TableHeader::kSubIndexes * index_bytes_; }
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
  std::uint64_t index_bytes_;  // of one sub-index, over all its levels
};

/// Sets rows[i] to find(keys[i], hash), for all keys. `home(hash)` is the line in which that search begins.
///
/// The lines of a block are prefetched by a short loop, so that several translations of their addresses,
/// which miss the TLB, are in progress at a time; 32 is the fastest of 16 to 128 (docs/performance.md).
template <class Home, class Find>
void find_in_blocks(std::span<const std::int64_t> keys, std::span<std::uint32_t> rows, const Home& home,
                    const Find& find) {
  constexpr std::size_t kBlock = 32;
  std::array<std::uint64_t, kBlock> hashes;
  for (std::size_t first = 0; first < keys.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, keys.size() - first);
    for (std::size_t i = 0; i < count; ++i) {
      hashes[i] = hash_of(keys[first + i]);
      __builtin_prefetch(home(hashes[i]));
    }
    for (std::size_t i = 0; i < count; ++i) rows[first + i] = find(keys[first + i], hashes[i]);
  }
}

/// Finds keys in a shard that another thread or process may be changing. Any thread.
class TableReader {
 public:
  /// `memory`: of the shard, which must outlive this object.
  TableReader(const std::byte* memory, const TableLayout& layout) : memory_(memory), layout_(&layout) {}

  /// The state of the sub-indexes when a read began.
  class Epochs {
   public:
    Epochs() = default;
    explicit Epochs(const TableReader& reader) noexcept { begin(reader); }
    void begin(const TableReader& reader) noexcept;
    /// Returns false if a row of this key that was copied since `begin` may be another key's, or its row may
    /// have been missed. Call it after an acquire fence.
    bool valid(std::uint64_t hash) const noexcept {
      return !changed_any_ || !changed_[hash % TableHeader::kSubIndexes];
    }
    /// Compares all epochs with those of `begin`. Returns true if none has changed.
    bool check(const TableReader& reader) noexcept;

   private:
    friend class TableReader;
    struct Lines {
      const IndexLine* first;
      std::uint64_t mask;
      std::uint64_t epoch;
    };
    std::array<Lines, TableHeader::kSubIndexes> lines_{};
    std::array<bool, TableHeader::kSubIndexes> changed_{};
    bool changed_any_ = false;
  };

  /// Returns the line in which the search of a key begins, to prefetch it.
  static const IndexLine* home(const Epochs& epochs, std::uint64_t hash) noexcept {
    const Epochs::Lines& lines = epochs.lines_[hash % TableHeader::kSubIndexes];
    return lines.first + (hash >> 6 & lines.mask);
  }
  /// Returns the row of a key, or kDefaultRow if there is none.
  std::uint32_t find(const Epochs& epochs, std::int64_t key, std::uint64_t hash) const noexcept {
    const Epochs::Lines& lines = epochs.lines_[hash % TableHeader::kSubIndexes];
    return find_in(lines.first, lines.mask, key, hash);
  }

  /// Row 0.
  const std::byte* values() const noexcept { return memory_ + layout_->values(); }
  const TableHeader& header() const noexcept { return *reinterpret_cast<const TableHeader*>(memory_); }

  /// Returns the row of a key in 2^level lines, or kDefaultRow.
  static std::uint32_t find_in(const IndexLine* lines, std::uint64_t mask, std::int64_t key,
                               std::uint64_t hash) noexcept {
    std::uint64_t at = hash >> 6 & mask;
    for (std::uint64_t probed = 0; probed <= mask; ++probed, at = (at + 1) & mask) {
      const IndexLine& line = lines[at];
      const std::uint32_t state = __atomic_load_n(&line.state, __ATOMIC_ACQUIRE);
      // Compares all entries: a branch for each would be mispredicted.
      std::uint32_t equal = 0;
      for (std::uint32_t i = 0; i < IndexLine::kEntries; ++i)
        equal |= std::uint32_t{__atomic_load_n(&line.keys[i], __ATOMIC_RELAXED) == key} << i;
      equal &= state;
      if (equal != 0) return __atomic_load_n(&line.rows[std::countr_zero(equal)], __ATOMIC_RELAXED);
      if ((state & IndexLine::kOverflowed) == 0) break;
    }
    return kDefaultRow;
  }

 private:
  const std::byte* memory_;
  const TableLayout* layout_;
};

}  // namespace capstan::protocol
