// closure_ledger.hpp -- how many entries of each closure were applied here, so that a second run of the
// closure applies the rest only.
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

/// A worker that dies may have begun closures, or ended some without a word of it reaching the coordinator,
/// which has them run again elsewhere. Pushes of a closure's replica are numbered, and so are the entries of
/// each for one ps, which are applied in order: so the last one is all that has to be known, and of the
/// second run those up to it are left out. Each push of a function that pushes the same things in the same
/// order in each of its replicas counts exactly once, whoever dies when. A push that sends nothing to a ps,
/// such as one that a filter drops, has its number too.
///
/// Two questions need two answers. A worker died: which of the closures that it held had begun? They have any
/// number, but a worker holds few: so each worker has a row of its last ones. The coordinator died: which of
/// the closures after its last recorded step had begun, on whatever worker? They are many, but their numbers
/// follow each other: so they share one table by number, in which a later closure takes the slot of one that
/// cannot run again. Rows and table are the whole state: in memory that outlives the process, nothing is lost
/// with it.
///
/// REQUIRES: a closure's second run pushes after all entries of the first that will ever be applied.
class ClosureLedger {
 public:
  /// A worker holds no more closures than --max-inflight-per-worker, so a closure that it ended before its
  /// last so many has reached the coordinator.
  static constexpr std::size_t kRemembered = 1024;
  /// Closures that a coordinator may run again: more than may be open (cluster::kMostOpenClosures), so that
  /// no two of them have one slot.
  static constexpr std::size_t kOpen = 64 * kRemembered;
  /// Closures of dead workers that are kept, for each that is remembered of one that lives; the oldest is
  /// forgotten first.
  static constexpr std::size_t kMostOfTheDead = 64;

  /// In closures, each of which has `replicas` counts.
  struct Capacity {
    std::size_t replicas = 1;
    std::size_t of_worker = kRemembered;
    std::size_t open = 0;  // kOpen where the coordinator may return; 0: its closures never run again
  };
  struct Count {
    std::uint64_t closure = 0;
    std::uint64_t replica = 0;
    std::uint64_t entries = 0;  // the position of the first that has not been applied
  };
  /// Of one worker: how many counts its closures have begun, of which the last is at (begun - 1) % counts.
  /// All zero at first.
  struct Row {
    std::uint64_t* begun = nullptr;
    std::span<Count> counts;

    Count& last() const { return counts[(*begun - 1) % counts.size()]; }
    /// Of the closure that the worker has begun last; null where the entry is of another.
    Count* find(const protocol::PushHeader& header) const;
  };
  /// Bytes of a ledger for so many ranks.
  static std::size_t bytes_for(std::size_t ranks, const Capacity& capacity) noexcept {
    return open_bytes(capacity) + ranks * row_bytes(capacity);
  }

  /// `memory`: bytes_for() the ranks that there may be, aligned to 8 bytes, zeroed or filled by a process
  /// that is dead; empty: its own.
  explicit ClosureLedger(Capacity capacity, std::span<std::byte> memory = {});
  ClosureLedger() : ClosureLedger(Capacity{}) {}

  /// False when an earlier run of the closure has had this entry applied.
  bool enter(const protocol::PushHeader& header);
  /// Up to which position entries of the closure's replica have been applied, as far as its pusher is
  /// concerned.
  std::uint64_t entered(const protocol::PushHeader& header) const;
  /// The entry, of the closure that its pusher began last, has been undone: `entered` is what it was before.
  void set_entered(const protocol::PushHeader& header, std::uint64_t entries);
  /// The worker has died.
  void close(int rank);

 private:
  /// A slot of the table of open closures.
  struct OpenCount {
    std::uint64_t closure;  // 0: none yet
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
  /// Null for a closure that never runs again elsewhere, and for one that is older than the slot's.
  OpenCount* open_slot(const protocol::PushHeader& header) const;

  Capacity capacity_;
  std::unique_ptr<OpenCount[]> own_open_;               // null: in persistent memory
  std::span<OpenCount> open_;                           // by closure and replica
  std::span<std::byte> memory_;                         // rows; empty: `own_`
  std::vector<std::unique_ptr<std::byte[]>> own_;       // by rank
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // closure, replica
  // Copied from rows of dead workers, which do not change any more.
  std::map<Key, std::uint64_t> of_the_dead_;  // entries
  std::deque<Key> order_;                     // of `of_the_dead_`
};

}  // namespace capstan::ps
