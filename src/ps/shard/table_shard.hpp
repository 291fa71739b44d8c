// table_shard.hpp -- a shard of a dynamic table: one row per key, allocated when the key is added.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "protocol/table_layout.hpp"
#include "ps/shard/admission_filter.hpp"
#include "ps/shard/host_shard.hpp"
#include "ps/shard/key_index.hpp"
#include "ps/shard/row_usage.hpp"

namespace capstan::ps {

/// Memory of a table's shard: one range that is reserved for all rows (protocol/table_layout.hpp).
///
/// The index is derived from the array of keys. The journal also covers keys and states, so a restarted ps
/// can rebuild the index. A checkpoint has the rows with their keys and states. Changed by one thread at a
/// time.
class TableShard final : public HostShard {
 public:
  /// `memory`: as large as the layout, zeroed before the first process uses it.
  TableShard(const protocol::CreateShard& description, const protocol::ShardLocation& location,
             const Words& words, std::byte* memory, Shared shared);

  void initialize() override { write_initial_slots(protocol::kDefaultRow); }
  std::uint64_t saved_rows() const noexcept override {
    return protocol::saved_table_rows(header_.rows_end, layout_.rows());
  }

  /// Returns the rows of an entry's keys. Adds keys that do not exist; for a gradient, only the keys that are
  /// admitted. The row of a key that was not added is kDefaultRow. The result is valid until the next call.
  /// `entry`: its header. REQUIRES: PersistentState::begin was called for the entry.
  std::span<const std::uint32_t> find_or_add(std::span<const std::int64_t> keys,
                                             const protocol::PushHeader& entry);
  /// Returns the rows of keys; kDefaultRow for keys that do not exist.
  std::vector<std::uint32_t> find_rows(std::span<const std::int64_t> keys) const;
  /// Returns true if the gradients of keys that were not added are applied to the default row.
  bool has_trained_default_row() const noexcept {
    const protocol::TablePolicy& policy = description().policy;
    return policy.has_admission() && policy.missing == MissingKeys::default_row;
  }
  /// Removes keys; ignores keys that do not exist. REQUIRES: PersistentState::begin was called for the entry.
  void erase(std::span<const std::int64_t> keys);
  /// Returns whether each key exists.
  std::vector<std::uint8_t> contains(std::span<const std::int64_t> keys) const;

  /// Copies the rows of keys in the order given. Throws Error(not_found) for a missing key, with
  /// MissingKeys::error. Returns the number of missing keys.
  std::uint64_t gather_keys(std::span<const std::int64_t> keys, MissingKeys missing, std::byte* out) const;
  protocol::TableStatistics statistics() const noexcept;
  /// Returns the keys of rows [first_row, first_row + count).
  protocol::ListedKeys list(std::uint64_t first_row, std::uint64_t count) const;

  /// Builds the index from the keys. REQUIRES: the last entry was undone if it was not committed.
  void rebuild();

 private:
  std::uint64_t bytes_per_row(std::uint32_t array) const noexcept override;
  std::shared_ptr<FrozenRows> freeze_rows(std::optional<TouchedRows> touched) override;
  void restore_rows(const protocol::RestoreShard& from, RestoreFiles& files) override;
  void clear();
  void restore_row(std::uint32_t row, const std::vector<std::vector<std::byte>>& chunk, std::uint64_t at);
  void add_restored(const protocol::RestoreShard& from, std::int64_t key, std::uint32_t state,
                    const std::vector<std::vector<std::byte>>& chunk, std::uint64_t at);
  void add_bases(std::byte* (&bases)[Journal::kArrays]) const noexcept override;

  std::int64_t* keys() const noexcept { return reinterpret_cast<std::int64_t*>(memory_ + layout_.keys()); }
  std::uint32_t* states() const noexcept {
    return reinterpret_cast<std::uint32_t*>(memory_ + layout_.states());
  }
  std::uint32_t find(std::int64_t key) const noexcept { return index_.find(key, protocol::hash_of(key)); }
  /// Returns an unused row, or kDefaultRow if rows or memory are exhausted.
  std::uint32_t take_row();
  /// Bytes of a key and its row in memory: values, slots, the key and its state.
  std::uint64_t stored_bytes_per_key() const noexcept;
  bool has_memory();
  bool admits(std::int64_t key, const protocol::PushHeader& entry);
  void add_missing(std::span<const std::int64_t> keys, const protocol::PushHeader& entry);
  /// Evicts keys that are too old or in excess of the capacity: at most `keys_of_entry` + 64 keys.
  void evict(std::size_t keys_of_entry);
  void evict_rows(std::span<const std::uint32_t> rows);
  /// Marks rows as unused. REQUIRES: their keys are no longer in the index.
  void free_rows(std::span<const std::uint32_t> rows);
  void log_keys(std::span<const std::uint32_t> rows);
  void write_initial(std::int64_t key, std::uint32_t row);
  void write_initial_slots(std::uint32_t row);

  std::byte* memory_;
  protocol::TableLayout layout_;
  protocol::TableHeader& header_;
  KeyIndex index_;
  RowUsage usage_;
  AdmissionFilter filter_;
  std::vector<std::uint32_t> free_;     // unused rows below rows_end, except those in `evicted_`
  std::vector<std::uint32_t> evicted_;  // reused only after this entry, since its undo restores their keys
  std::uint64_t checked_rows_ = 0;      // rows below this number have memory
  std::vector<std::uint32_t> rows_;     // of the entry in progress
  std::vector<std::byte> initial_;      // values of the key that is added
};

}  // namespace capstan::ps
