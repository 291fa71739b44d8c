// store.hpp -- the shards of one ps: values, optimizer slots, and what may be done to them.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/hdf5/checkpoint_types.hpp"
#include "protocol/descriptor.hpp"
#include "protocol/failover.hpp"
#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"
#include "protocol/report.hpp"
#include "protocol/restore_plan.hpp"
#include "ps/durability/persistent_state.hpp"
#include "ps/ingest/closure_ledger.hpp"
#include "ps/shard/chunk_pool.hpp"
#include "ps/shard/device_table.hpp"
#include "ps/shard/heap.hpp"
#include "ps/shard/shard_snapshot.hpp"
#include "ps/shard/shared_regions.hpp"
#include "ps/shard/staging_buffers.hpp"
#include "ps/shard/touched_rows.hpp"
#include "ps/update/update_groups.hpp"

namespace capstan::ps {

class RestoreFiles;

/// Every shard has one writer at a time. Under mpirun that is the ps's only thread, and the mutex is never
/// contended; in an embedded cluster the workers of the process push through `apply` themselves.
class Store final : public protocol::PushSink {
 public:
  using Count = std::function<void(std::uint32_t counter, std::uint64_t delta)>;

  /// `publish` is called when a step of an update group has ended, `count` adds to a counter. What is in
  /// `kept` outlives this process; without it memory comes from `regions`, or else from the fabric.
  Store(
      transport::Fabric& fabric, std::uint64_t slab_bytes, int ps_index,
      UpdateGroups::Publish publish = [](std::uint32_t, std::uint64_t) {},
      Count count = [](std::uint32_t, std::uint64_t) {}, PersistentState* kept = nullptr,
      SharedRegions* regions = nullptr, const ClosureLedger::Capacity& ledger = {});

  /// The number of the GPU in whose memory shards lie that ask for one. Throws Error where there is none.
  using FindGpu = std::function<int()>;
  /// `find` is called when the first one asks. `deterministic`: see ShardGpu. Before anything else.
  void use_gpu(FindGpu find, bool deterministic);

  /// What an earlier process left in the kept memory: its shards, as after the last push that it ended.
  /// Throws Error(unavailable) where there is an update group, whose steps died with the process, or a shard
  /// in a GPU's memory, which died, too.
  void recover();

  /// Makes and fills a shard. Throws Error: already_exists, invalid_argument (an optimizer that does not go
  /// with the dtype), resource_exhausted, failed_precondition (no GPU).
  /// `filled` says that the values come from elsewhere: they are 0 then.
  protocol::ShardLocation create(const protocol::CreateShard& request, bool filled = false);
  /// Of all shards, for who knows the places that they had on another host.
  std::vector<protocol::PlaceNow> places();

  /// All that are there.
  std::vector<protocol::ListedShard> list();

  /// A push. One that does not fit the shard is a broken client: logged, dropped.
  void apply(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
             const std::byte* values) override;

  bool ready(const protocol::PushHeader& header) override;
  void abandon(std::uint32_t variable, std::uint32_t shard) override;
  bool unsettled() const noexcept override { return unsettled_.load(std::memory_order_acquire); }
  void settle() override;
  /// Throws what has gone wrong on the GPU, whoever was told: what it had taken is lost, and no push is
  /// certain any more.
  void require_gpu();
  bool reserve_from_gpu(std::uint32_t variable, std::uint32_t shard, int gpu, std::uint64_t rows) override;
  void apply_from_gpu(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                      const std::byte* values, const gpu::Event& made) override;
  /// For other processes of this host, and for threads of this one, that read a shard's values in the GPU
  /// (gpu::MappedMemory). Nothing for a shard that is elsewhere.
  std::vector<std::byte> gpu_key(std::uint32_t variable, std::uint32_t shard);
  /// For pushes of that rank to shards there by kernels of its own; without a key where no shard is there.
  /// Throws Error(resource_exhausted).
  protocol::StagingBufferKey open_gpu_room(int rank, std::uint64_t bytes);
  /// See StagingBuffers.
  void release_gpu_rooms(int rank);

  void create_group(const protocol::CreateGroup& request);
  void restart_group(std::uint32_t group);
  protocol::GroupClocks clocks(std::uint32_t group);
  /// A worker has died, and all that it pushed has been applied.
  void remove(int rank);
  /// A worker that was started again may take part in every update group.
  void join(int rank);

  /// Shards of a variable that could not be made on all ps; nobody has used them.
  void drop(std::uint32_t variable);

  /// For reads that the ps serves. Throws Error(not_found).
  struct RowsView {
    const std::byte* values = nullptr;  // null: `on_gpu` has them
    std::uint64_t rows = 0;
    std::uint64_t row_bytes = 0;
    std::shared_ptr<const DeviceTable> on_gpu = {};
  };
  RowsView view(std::uint32_t variable, std::uint32_t shard);
  /// Rows in the order asked for, between two pushes. REQUIRES: row numbers within the shard.
  void gather(const RowsView& from, std::span<const std::uint32_t> rows, std::byte* out);
  void gather(const RowsView& from, std::uint64_t first_byte, std::span<std::byte> out);
  /// No push to the shard is half applied.
  bool whole(std::uint32_t variable, std::uint32_t shard);
  /// `count` is 1 for a read that begins to wait and -1 for one that ends. While any waits, `ready` lets no
  /// further push begin on the shard, so that it gets whole.
  void add_waiting_read(std::uint32_t variable, std::uint32_t shard, int count);
  /// For the statistics: rows of a shard that have gone out in messages.
  void count_sent(std::uint32_t variable, std::uint32_t shard, std::uint64_t rows);

  /// Fills shards from a checkpoint that the coordinator has found to fit, and every ps to be whole.
  void restore(const protocol::RestorePart& part);

  Heap& heap() noexcept { return heap_; }
  protocol::PsStatistics statistics();
  /// Without what a process is.
  protocol::PsReport report();

 private:
  friend class StoreSnapshot;
  struct Shard;
  static void check_bounds(const protocol::RestoreShard& from, const Shard& to);

  struct Shard {
    protocol::CreateShard description;
    protocol::ShardLocation place;
    std::shared_ptr<DeviceTable> on_gpu;  // null: values and slots are here
    std::byte* values = nullptr;
    std::vector<std::byte*> slots;  // in the order of protocol::slots_of
    std::uint64_t* version = nullptr;
    std::int64_t* steps = nullptr;  // in the version's line
    int unfinished = 0;             // pushes of which some entries have been applied and others not
    int waiting_reads = 0;
    std::uint64_t rows_moved = 0;  // pushed, and sent
    std::vector<std::shared_ptr<ShardSnapshot>>
        snapshots;                       // that want to know of changes before they are made
    std::optional<TouchedRows> touched;  // since a save that increments may follow

    std::uint64_t width() const noexcept { return protocol::width_of(description.shape); }
    std::uint64_t row_bytes() const noexcept { return width() * size_of(description.dtype); }
    /// The rows that have been touched, or all, as they are now.
    std::shared_ptr<FrozenRows> freeze(std::optional<TouchedRows> of, std::shared_ptr<ChunkPool> chunks);
  };

  /// Makes the shard's version odd while it lives, unless an unfinished push has done so already.
  class Writing;

  /// What making a shard takes.
  struct Room {
    Heap::Mark heap;
    PersistentState::Mark kept;
    Piece versions;
    std::uint64_t versions_used = 0;
    bool operator==(const Room& other) const noexcept {
      return heap == other.heap && kept == other.kept && versions_used == other.versions_used;
    }
  };
  Room room() const noexcept;
  void back_to(const Room& room) noexcept;
  Shard make(const protocol::CreateShard& request, bool filled);
  void make_on_host(Shard& made, bool filled, std::vector<PiecePlace>& slots);
  void make_on_gpu(Shard& made, bool filled);
  std::shared_ptr<ShardGpu> gpu_for(const protocol::CreateShard& request);
  static void restore_on_host(const protocol::RestoreShard& from, Shard& to, RestoreFiles& files);
  static void restore_on_gpu(const protocol::RestoreShard& from, DeviceTable& to, RestoreFiles& files);

  Shard& find(std::uint32_t variable, std::uint32_t shard);
  Piece new_version();
  static bool fits(const Shard& shard, const protocol::PushHeader& header,
                   std::span<const std::uint32_t> rows);
  /// With `made`, the values are in the memory of the shard's GPU.
  void apply_now(Shard& shard, const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                 const std::byte* values, const gpu::Event* made = nullptr);
  /// REQUIRES: the mutex.
  void settle_now();
  /// Does it, and notes where the GPU has failed.
  template <class F>
  void on_gpu(const F& f) {
    try {
      f();
    } catch (...) {
      if (!gpu_failure_) gpu_failure_ = std::current_exception();
      gpu_failed_.store(true, std::memory_order_release);
      throw;
    }
  }
  /// Of an entry that is applied, or was by an earlier run of its closure.
  static void count_part(Shard& shard, const protocol::PushHeader& header);
  void apply_on_gpu(Shard& shard, const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                    const std::byte* values, const gpu::Event* made);
  /// Where the gradient lies of an entry with `in_staging_buffer`; null where it is not in a room of its
  /// pusher.
  std::byte* in_staging_buffer(const Shard& shard, const protocol::PushHeader& header,
                               const std::byte* place) const;
  /// What a step's workers have pushed to one shard, as one push.
  void apply_sum(std::span<const HeldPush* const> pushes, int workers);
  void add_shard(const ShardRecord& record);
  void undo_cut_off();
  template <class T>
  void update(Shard& shard, const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
              const std::byte* values);

  std::mutex mutex_;
  std::shared_ptr<ChunkPool> chunks_ = std::make_shared<ChunkPool>();  // of snapshots
  PersistentState* kept_;
  Heap heap_;
  int ps_index_;
  FindGpu find_gpu_;
  bool deterministic_ = false;
  std::shared_ptr<ShardGpu> gpu_;  // null: no shard has asked for one
  StagingBuffers gpu_rooms_;
  std::atomic<bool> unsettled_{false};
  std::atomic<bool> gpu_failed_{false};
  std::exception_ptr gpu_failure_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Shard> shards_;  // by (variable, shard)
  Piece versions_;  // a page of version words, handed out one cache line at a time
  std::uint64_t versions_used_ = 0;
  /// The variable that was created last: the room before its shards and after them.
  struct Newest {
    std::uint32_t variable;
    Room before;
    Room after;
  };
  std::optional<Newest> newest_;
  protocol::PsStatistics statistics_;
  UpdateGroups groups_;
  Count count_;
  ClosureLedger ledger_;
};

}  // namespace capstan::ps
