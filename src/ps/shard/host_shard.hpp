// host_shard.hpp -- a shard in registered host memory.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ps/durability/journal.hpp"
#include "ps/shard/chunk_pool.hpp"
#include "ps/shard/shard.hpp"
#include "ps/update/update_parts.hpp"

namespace capstan::ps {

/// Clients on the same host read the rows in place, unless they are int8 rows (RowStorage), which this class
/// converts: calls take and return rows of the variable's dtype. Snapshots are copy-on-write.
class HostShard : public Shard {
 public:
  /// Memory of the shard, which it does not own.
  struct Arrays {
    std::byte* values = nullptr;
    std::vector<std::byte*> slots = {};  // in the order of protocol::slots_of
  };

  /// Objects that the shards of a ps share.
  struct Shared {
    std::shared_ptr<ChunkPool> chunks = std::make_shared<ChunkPool>();  // for rows that snapshots preserve
    std::shared_ptr<UpdateParts> parts = std::make_shared<UpdateParts>(1);
    Journal* journal = nullptr;  // records rows before they change, to undo an entry; null: no undo
  };

  HostShard(protocol::CreateShard description, const protocol::ShardLocation& location, const Words& words,
            Arrays arrays, Shared shared);

  /// REQUIRES: zeroed memory.
  void initialize() override;
  const std::byte* host_values() const noexcept override { return stores_int8() ? nullptr : values_; }
  void gather(std::span<const std::uint32_t> rows, std::byte* out) const override;
  void gather(std::uint64_t first_byte, std::span<std::byte> out) const override;

  /// Undoes the last entry in the journal. `steps`: number of update steps before it. REQUIRES: the entry
  /// belongs to this shard and was not committed.
  void undo(std::int64_t steps);

 protected:
  /// Addresses of the slots.
  const std::vector<std::byte*>& slots() const noexcept { return slots_; }
  /// Returns the address of the values (0) or of a slot (from 1 on).
  std::byte* array(std::uint32_t number) const { return number == 0 ? values_ : slots_.at(number - 1); }
  bool stores_int8() const noexcept { return description().storage.int8; }
  /// Returns the bytes per row, in memory, of the values (0) or of a slot (from 1 on).
  std::uint64_t stored_bytes_per_row(std::uint32_t number) const noexcept;
  /// Sets the values of consecutive rows; int8 rows are rounded to nearest.
  void store_rows(std::uint64_t first_row, std::span<const std::byte> values);
  /// Rounds values as storing and reading them does.
  void round_as_stored(std::span<std::byte> values) const;
  /// Null: no undo.
  Journal* journal() const noexcept { return shared_.journal; }
  const std::shared_ptr<ChunkPool>& chunks() const noexcept { return shared_.chunks; }

 private:
  void update(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
              const std::byte* values) override;
  std::shared_ptr<FrozenRows> freeze_rows(std::optional<TouchedRows> touched) override;
  /// Sets the addresses of further arrays that the journal covers, by their number in Journal::Group.
  virtual void add_bases(std::byte* (&/*bases*/)[Journal::kArrays]) const noexcept {}
  void restore_rows(const protocol::RestoreShard& from, RestoreFiles& files) override;

  void initialize_values();
  void gather_int8(std::uint64_t first_byte, std::span<std::byte> out) const;
  void restore_int8_rows(const protocol::RestoreShard& from, RestoreFiles& files);
  void update_int8(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                   const std::byte* values);
  template <class T>
  void update_as(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                 const std::byte* values);

  std::byte* values_;
  std::vector<std::byte*> slots_;
  Optimizer optimizer_;  // with the learning rate of the last update
  Shared shared_;
};

}  // namespace capstan::ps
