// store.hpp -- the shards of one ps, and the operations of clients on them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"
#include "protocol/report.hpp"
#include "protocol/restore_plan.hpp"
#include "ps/durability/persistent_state.hpp"
#include "ps/ingest/closure_ledger.hpp"
#include "ps/shard/heap.hpp"
#include "ps/shard/shard.hpp"
#include "ps/shard/shard_factory.hpp"
#include "ps/shard/shared_regions.hpp"
#include "ps/shard/store_device.hpp"
#include "ps/shard/table_shard.hpp"
#include "ps/update/update_groups.hpp"

namespace capstan::ps {

/// Directory of shards by variable and number. Thread-safe: one mutex serializes all calls, so each shard has
/// one writer at a time. In a job of several processes, only the ps's thread applies pushes; in an embedded
/// cluster, the workers of the process call `apply` themselves.
class Store final : public protocol::PushSink {
 public:
  using Count = std::function<void(std::uint32_t counter, std::uint64_t delta)>;

  /// `publish` is called when a step of an update group is complete, `count` to add to a counter. Memory
  /// comes from `persistent` if not null, else from `regions` if not null, else from the fabric; all must
  /// outlive the store. `threads`: number of threads that apply a push to rows in host memory.
  Store(
      transport::Fabric& fabric, std::uint64_t slab_bytes, int ps_index,
      UpdateGroups::Publish publish = [](std::uint32_t, std::uint64_t) {},
      Count count = [](std::uint32_t, std::uint64_t) {}, PersistentState* persistent = nullptr,
      SharedRegions* regions = nullptr, const ClosureLedger::Capacity& ledger = {}, int threads = 1);

  /// Recovers the shards of the previous process as of its last committed entry. Throws Error(unavailable) if
  /// there was an update group, whose unfinished step is lost, or a shard in GPU memory, which is lost.
  /// REQUIRES: the store is empty.
  void recover();

  /// Creates a shard. `restored`: its values are zero until `restore`. Throws Error: already_exists,
  /// invalid_argument (such as an optimizer that does not support the dtype), resource_exhausted,
  /// failed_precondition (no GPU).
  protocol::ShardLocation create(const protocol::CreateShard& request, bool restored = false);
  /// Removes the shards of a variable that could not be created on all ps. REQUIRES: no client uses them.
  void drop(std::uint32_t variable);
  std::vector<protocol::ListedShard> list();

  /// Applies an entry of a push. Logs and drops one that does not fit the shard: its client is faulty.
  void apply(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
             const std::byte* values) override;
  bool ready(const protocol::PushHeader& header) override;
  void abandon(std::uint32_t variable, std::uint32_t shard) override;
  bool unsettled() const noexcept override { return device_.context().unsettled(); }
  void settle() override;
  StoreDevice* device() noexcept override { return &device_; }

  void create_group(const protocol::CreateGroup& request);
  void restart_group(std::uint32_t group);
  protocol::GroupClocks clocks(std::uint32_t group);
  /// Adds a worker to all update groups.
  void add_worker(int rank);
  /// Removes a dead worker. REQUIRES: its pushes have been applied.
  void remove_worker(int rank);

  /// View of a shard for reads that the ps serves.
  struct RowsView {
    const std::byte* values = nullptr;  // null: only `gather` reads them
    std::uint64_t rows = 0;
    std::uint64_t row_bytes = 0;
    std::shared_ptr<const Shard> shard;
  };
  /// Throws Error(not_found).
  RowsView view(std::uint32_t variable, std::uint32_t shard);
  /// Copies rows in the order given, between two entries. REQUIRES: row numbers within the shard.
  void gather(const RowsView& from, std::span<const std::uint32_t> rows, std::byte* out);
  void gather(const RowsView& from, std::uint64_t first_byte, std::span<std::byte> out);
  /// Returns true if no push to the shard is partially applied. Throws Error(not_found).
  bool is_consistent(std::uint32_t variable, std::uint32_t shard);
  /// See Shard::add_waiting_read. Throws Error(not_found).
  void add_waiting_read(std::uint32_t variable, std::uint32_t shard, int count);
  /// Counts rows of a shard that were sent by message.
  void count_sent(std::uint32_t variable, std::uint32_t shard, std::uint64_t rows);

  /// Calls for dynamic tables. Throw Error: not_found; invalid_argument if the variable is not a table.
  protocol::TableStatistics table_statistics(const protocol::ShardOfTable& of);
  std::vector<std::uint8_t> find_keys(const protocol::FindKeys& request);
  protocol::ListedKeys list_keys(const protocol::ListKeys& request);
  /// See TableShard::gather_keys. REQUIRES: `from` is a view of a table.
  void gather_keys(const RowsView& from, std::span<const std::int64_t> keys, MissingKeys missing,
                   std::byte* out);

  /// Restores shards from a checkpoint. REQUIRES: check_restore succeeded on every ps.
  void restore(const protocol::RestorePart& part);

  Heap& heap() noexcept { return heap_; }
  protocol::PsStatistics statistics();
  /// Returns a report of the shards; the caller adds the fields about the process.
  protocol::PsReport report();

 private:
  friend class StoreDevice;
  friend class StoreSnapshot;
  using Key = std::pair<std::uint32_t, std::uint32_t>;  // variable, shard

  /// Returns null if the shard does not exist.
  Shard* find_or_null(std::uint32_t variable, std::uint32_t shard) const;
  /// Throws Error(not_found).
  Shard& find(std::uint32_t variable, std::uint32_t shard) const;
  /// Throws Error: not_found, invalid_argument.
  TableShard& find_table(std::uint32_t variable, std::uint32_t shard) const;
  std::optional<protocol::PushHeader> widen(const protocol::PushHeader& header, const Shard& shard,
                                            const std::byte* values);
  void apply_values(Shard& shard, const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                    const std::byte* values);
  void apply_keyed(Shard& shard, const protocol::PushHeader& header, std::span<const std::uint32_t> words,
                   const std::byte* values);
  std::vector<HeldPush> pushes_to_rows(TableShard& table, std::span<const HeldPush* const> pushes);
  void log_misfit(const protocol::PushHeader& header) const;
  /// Sets the learning rate of a shard. Logs and drops a rate that its optimizer does not support.
  void set_learning_rate(const protocol::PushHeader& header);
  void count(const protocol::PushHeader& header, const Shard& shard);
  void apply_to(Shard& shard, const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                const std::byte* values);
  /// Applies the pushes of all workers to one shard in a step as one push.
  void apply_sum(std::span<const HeldPush* const> pushes, int workers);
  std::map<Key, ShardRecord> replay_manifest();
  /// Rows and values of an entry, without those of keys that could not be added to the table.
  struct AcceptedRows {
    std::vector<std::uint32_t> rows;
    std::vector<std::byte> values;
    void take(std::span<const std::uint32_t> from, const std::byte* bytes, std::uint64_t row_bytes);
  };

  std::mutex mutex_;
  PersistentState* persistent_;
  int ps_index_;
  Heap heap_;
  StoreDevice device_;
  ShardFactory factory_;
  std::map<Key, std::shared_ptr<Shard>> shards_;
  protocol::PsStatistics statistics_;
  UpdateGroups groups_;
  Count count_;
  ClosureLedger ledger_;
  AcceptedRows accepted_;
  std::vector<float> floats_;  // values of an entry with bfloat16
};

}  // namespace capstan::ps
