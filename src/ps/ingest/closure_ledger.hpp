// closure_ledger.hpp -- counts the applied entries of each closure, so that a second run applies only the
// rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "protocol/push_format.hpp"

namespace capstan::ps {

/// Makes pushes of repeated closures idempotent. When a worker dies, the coordinator runs its unfinished
/// closures elsewhere, including those that ended unreported. The pushes of a closure's replica are numbered,
/// and so are the entries of each push to one ps, which applies them in order. So the position of the last
/// applied entry suffices: the second run skips entries up to it. Each push is then applied exactly once
/// whichever ranks die, if every run of a closure's replica pushes the same data in the same order. A push
/// that sends nothing to a ps, such as one that a filter drops, has a number too.
///
/// Two tables answer two questions. When a worker dies: which of its closures had begun? Their numbers are
/// arbitrary but few, so each worker has a row of its latest closures. When the coordinator dies: which
/// closures after its last recorded step had begun, on any worker? They are many but consecutive, so they
/// share one table indexed by number, in which a later closure reuses the slot of one that cannot run again.
/// In persistent memory, rows and table survive the process.
///
/// Not thread-safe. REQUIRES: once the second run of a closure has pushed, no more entries of its first run
/// arrive.
class ClosureLedger {
 public:
  /// Number of latest closures in a worker's row. A worker holds at most --max-inflight-per-worker closures,
  /// so the coordinator knows the result of any closure that is older than these.
  static constexpr std::size_t kLatestClosures = 1024;
  /// Slots for closures that a restarted coordinator may run again: more than their maximum number,
  /// cluster::kMaxUnrecordedClosures, so that no two of them share a slot.
  static constexpr std::size_t kOpen = 64 * kLatestClosures;
  /// Number of dead workers whose rows are retained, each with as many counts as a live worker's row; the
  /// oldest count is evicted first.
  static constexpr std::size_t kRetainedDeadWorkers = 64;

  /// Sizes in closures, each of which has `replicas` counts.
  struct Capacity {
    std::size_t replicas = 1;
    std::size_t of_worker = kLatestClosures;
    std::size_t open = 0;  // kOpen if the coordinator may restart, else 0
  };
  struct Count {
    std::uint64_t closure = 0;
    std::uint64_t replica = 0;
    std::uint64_t entries = 0;  // position of the first entry that has not been applied
  };
  /// Circular buffer of one worker: the number of counts begun so far, of which the latest is at
  /// (begun - 1) % counts.size(). All zero initially.
  struct Row {
    std::uint64_t* begun = nullptr;
    std::span<Count> counts;

    Count& last() const { return counts[(*begun - 1) % counts.size()]; }
    /// Returns the count for the entry if it belongs to the worker's latest closure, else null.
    Count* find(const protocol::PushHeader& header) const;
  };
  /// Size of the memory of a ledger for `ranks` ranks.
  static std::size_t bytes_for(std::size_t ranks, const Capacity& capacity) noexcept {
    return open_bytes(capacity) + ranks * row_bytes(capacity);
  }

  /// `memory`: bytes_for() the maximum number of ranks, aligned to 8 bytes, zeroed or filled by the previous
  /// process; must outlive this object. Empty: the ledger allocates its own memory.
  explicit ClosureLedger(Capacity capacity, std::span<std::byte> memory = {});
  ClosureLedger() : ClosureLedger(Capacity{}) {}

  /// Records an entry before it is applied. Returns false if an earlier run of its closure has applied it.
  bool enter(const protocol::PushHeader& header);
  /// Returns the position of the first entry of the closure's replica that has not been applied. If the
  /// closure is repeated (`header.again`), entries that an earlier run applied count as applied.
  std::uint64_t entered(const protocol::PushHeader& header) const;
  /// Resets `entered` after an entry of its pusher's latest closure was undone.
  void set_entered(const protocol::PushHeader& header, std::uint64_t entries);
  /// Retains the counts of a dead worker for the second runs of its closures.
  void close(int rank);

 private:
  /// Slot in the table of open closures.
  struct OpenCount {
    std::uint64_t closure;  // 0: unused
    std::uint64_t entries;
  };
  static std::size_t open_bytes(const Capacity& capacity) noexcept {
    return capacity.open * capacity.replicas * sizeof(OpenCount);
  }
  static std::size_t row_bytes(const Capacity& capacity) noexcept {
    return sizeof(std::uint64_t) * 2 + capacity.of_worker * capacity.replicas * sizeof(Count);
  }

  Row row(std::size_t rank);
  Row row_or_none(std::size_t rank) const;
  Row row_at(std::byte* at) const;
  std::size_t ranks() const noexcept;
  /// Returns null for a closure that never runs elsewhere, and for one that is older than the slot's closure.
  OpenCount* open_slot(const protocol::PushHeader& header) const;

  Capacity capacity_;
  std::unique_ptr<OpenCount[]> own_open_;               // null: in persistent memory
  std::span<OpenCount> open_;                           // by closure and replica
  std::span<std::byte> memory_;                         // rows in persistent memory; empty: rows in `own_`
  std::vector<std::unique_ptr<std::byte[]>> own_;       // rows by rank
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // closure, replica
  // Copies of the rows of dead workers, which no longer change:
  std::map<Key, std::uint64_t> dead_counts_;  // Count::entries
  std::deque<Key> dead_order_;                // oldest first
};

}  // namespace capstan::ps
