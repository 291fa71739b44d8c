// shard.hpp -- a shard of a variable: rows of values and optimizer slots, in host or GPU memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/fence.hpp"
#include "protocol/descriptor.hpp"
#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"
#include "protocol/restore_plan.hpp"
#include "ps/shard/frozen_rows.hpp"
#include "ps/shard/touched_rows.hpp"

namespace capstan::ps {

class RestoreFiles;
class ShardSnapshot;

/// Holds the state that does not depend on where the rows are stored: the description, the words that clients
/// read, and the pushes and snapshots in progress. Derived classes hold the rows: HostShard, DeviceShard.
/// Calls require the mutex of the store, except those for the description, the location and the sizes.
class Shard {
 public:
  /// Learning rate that was set during training and replaces the rate of the description.
  struct RateOverride {
    double rate;
    std::uint64_t is_set;  // 0: no override
  };
  /// A cache line of registered memory, zeroed before the first process uses it. The version is odd while
  /// rows change; clients that map the memory compare it before and after a read. `steps` counts update
  /// steps, the t of Adam.
  struct Words {
    std::uint64_t* version = nullptr;
    std::int64_t* steps = nullptr;
    RateOverride* rate = nullptr;
    static Words at(std::byte* line) noexcept {
      return {reinterpret_cast<std::uint64_t*>(line),
              reinterpret_cast<std::int64_t*>(line + sizeof(std::uint64_t)),
              reinterpret_cast<RateOverride*>(line + sizeof(std::uint64_t) + sizeof(std::int64_t))};
    }
  };

  Shard(protocol::CreateShard description, const protocol::ShardLocation& location, const Words& words);
  virtual ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  const protocol::CreateShard& description() const noexcept { return description_; }
  const protocol::ShardLocation& location() const noexcept { return location_; }
  std::uint64_t rows() const noexcept { return description_.rows; }
  /// Elements per row.
  std::uint64_t width() const noexcept { return width_; }
  /// Bytes of a row in messages.
  std::uint64_t row_bytes() const noexcept { return width_ * size_of(description_.dtype); }

  /// Sets the initial values and slots. REQUIRES: the shard was just constructed.
  virtual void initialize() = 0;

  /// Returns true if the entry matches the shape of the shard. If the values are in a staging buffer, it must
  /// also be a buffer of the pusher.
  bool fits(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
            const std::byte* values) const;
  /// Applies an entry of a push; `rows` and `values` may be reused on return. REQUIRES: the entry fits.
  void apply(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
             const std::byte* values) {
    change(header, rows, [&] { update(header, rows, values); });
  }
  /// Accounts for an entry that was applied by an earlier run of its closure.
  void skip(const protocol::PushHeader& header);
  /// Ends a push whose remaining entries will never arrive, if one is unfinished.
  void abandon();
  /// Returns true if no push is partially applied.
  bool is_consistent() const noexcept { return unfinished_ == 0; }
  std::int64_t steps() const noexcept { return *words_.steps; }
  /// Sets the learning rate of all further updates; nullopt: the rate of the description.
  void override_learning_rate(std::optional<double> rate) noexcept;
  std::optional<double> overriding_learning_rate() const noexcept {
    return words_.rate->is_set != 0 ? std::optional(words_.rate->rate) : std::nullopt;
  }

  /// Returns the address of the values if clients and the ps can read them in place, else null.
  virtual const std::byte* host_values() const noexcept { return nullptr; }
  /// Copies rows in the order given. REQUIRES: row numbers within the shard.
  virtual void gather(std::span<const std::uint32_t> rows, std::byte* out) const = 0;
  /// Copies consecutive bytes of the values. REQUIRES: they are within the shard.
  virtual void gather(std::uint64_t first_byte, std::span<std::byte> out) const = 0;
  /// Counts reads that wait for the shard to become consistent; `count` is 1 when a read starts to wait and
  /// -1 when it stops. While any waits, callers should begin no further push.
  void add_waiting_read(int count) noexcept { waiting_reads_ += count; }
  bool has_waiting_reads() const noexcept { return waiting_reads_ != 0; }

  /// Takes a snapshot of the rows that `saved` selects, and starts to track touched rows if `saved` requests
  /// it. Throws std::bad_alloc or Error(resource_exhausted), and then changes nothing. REQUIRES: the shard is
  /// consistent.
  std::shared_ptr<FrozenRows> freeze(const protocol::SavedRows& saved);
  /// Number of rows that a complete snapshot has.
  virtual std::uint64_t saved_rows() const noexcept { return rows(); }
  /// Returns true if `freeze` copies all rows, which may take seconds.
  virtual bool freeze_copies_rows() const noexcept { return false; }
  /// Stops preserving rows for a snapshot of this shard.
  void release(const std::shared_ptr<FrozenRows>& snapshot);
  /// Preserves all rows for all snapshots, before the memory of the rows is overwritten or freed.
  void complete_snapshots();

  /// Overwrites rows with those of a checkpoint. Throws Error: data_loss if they do not fit the shard, or an
  /// I/O error.
  void restore(const protocol::RestoreShard& from, RestoreFiles& files);

  /// Resumes a shard of the previous process, in which `unfinished` pushes were unfinished. Sets the version
  /// to a value that the previous process did not publish, since a reader that began before its death may
  /// have read rows that were undone.
  void resume(int unfinished) noexcept;

  /// Returns the number of rows pushed to the shard and sent from it.
  std::uint64_t rows_moved() const noexcept { return rows_moved_; }
  void count_sent(std::uint64_t rows) noexcept { rows_moved_ += rows; }
  /// Returns the bytes of GPU memory that values and slots take.
  virtual std::uint64_t device_bytes() const noexcept { return 0; }

 protected:
  /// Returns the bytes per row, in a checkpoint, of the values (array 0), of a slot (1 and up), or of another
  /// array.
  virtual std::uint64_t bytes_per_row(std::uint32_t array) const noexcept;
  /// Calls `f`, which applies the rows of an entry, as one change: snapshots preserve the rows before it, and
  /// the version is odd during it.
  template <class F>
  void change(const protocol::PushHeader& header, std::span<const std::uint32_t> rows, const F& f) {
    before_change(header, rows);
    const WriteGuard guard(*this);
    count(header);
    f();
  }
  /// Has all snapshots preserve rows that are about to change outside of an update.
  void before_change(std::span<const std::uint32_t> rows);
  /// Has `snapshot` preserve rows before they change, from now on.
  void attach(std::shared_ptr<ShardSnapshot> snapshot) { snapshots_.push_back(std::move(snapshot)); }
  void set_steps(std::int64_t steps) noexcept { *words_.steps = steps; }
  /// Returns the learning rate of the update in progress, which `steps()` already includes.
  double learning_rate() const noexcept;

 private:
  /// Makes the version odd for the lifetime of this object; an unfinished push keeps it odd.
  class WriteGuard {
   public:
    explicit WriteGuard(Shard& shard) noexcept : shard_(shard), version_(*shard.words_.version) {
      if (shard_.unfinished_ != 0) return;
      // Already odd if the previous process died during a change.
      version_.store(version_.load(std::memory_order_relaxed) | 1, std::memory_order_relaxed);
      thread_fence(std::memory_order_release);  // odd before any element changes
    }
    ~WriteGuard() {
      if (shard_.unfinished_ == 0)
        version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    }
    WriteGuard(const WriteGuard&) = delete;
    WriteGuard& operator=(const WriteGuard&) = delete;

   private:
    Shard& shard_;
    std::atomic_ref<std::uint64_t> version_;
  };

  /// Applies the rows of an entry: the one virtual call per entry.
  virtual void update(const protocol::PushHeader& header, std::span<const std::uint32_t> rows,
                      const std::byte* values) = 0;
  /// Returns true if the gradient of an entry is in a staging buffer of its pusher. `buffer_slot` points to a
  /// protocol::BufferSlot.
  virtual bool is_staged(const protocol::PushHeader& /*header*/, const std::byte* /*buffer_slot*/) const {
    return false;
  }
  virtual std::shared_ptr<FrozenRows> freeze_rows(std::optional<TouchedRows> touched) = 0;
  /// Overwrites rows with those of a checkpoint, for restore().
  virtual void restore_rows(const protocol::RestoreShard& from, RestoreFiles& files) = 0;

  void before_change(const protocol::PushHeader& header, std::span<const std::uint32_t> rows);
  void count(const protocol::PushHeader& header) noexcept;
  void count_part(const protocol::PushHeader& header) noexcept;
  void check_bounds(const protocol::RestoreShard& from) const;

  protocol::CreateShard description_;
  protocol::ShardLocation location_;
  std::uint64_t width_;
  Words words_;
  int unfinished_ = 0;  // pushes of which only some entries have been applied
  int waiting_reads_ = 0;
  std::uint64_t rows_moved_ = 0;
  std::vector<std::shared_ptr<ShardSnapshot>> snapshots_;  // that preserve rows before they change
  std::optional<TouchedRows> touched_;                     // since the base of the next incremental save
};

}  // namespace capstan::ps
