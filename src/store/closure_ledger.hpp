// closure_ledger.hpp -- what a closure has had applied here, so that a second run of it applies the rest
// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "shard/push_format.hpp"

namespace capstan::store {

/// A worker that dies may have begun closures, or ended some without a word of it reaching the coordinator,
/// which has them run again elsewhere. Pushes of a closure's replica are numbered, and so are the entries of
/// each for one ps, which are applied in order: so the last one is all that has to be known, and of the
/// second run those up to it are left out. Each push of a function that pushes the same things in the same
/// order in each of its replicas counts exactly once, whoever dies when. A push that sends nothing to a ps,
/// such as one that a filter drops, has its number too.
///
/// REQUIRES: a closure's second run pushes after close() of the worker of the first, or after gather().
class ClosureLedger {
 public:
  /// A worker holds no more closures than --max-inflight-per-worker, so what it ended before the last so many
  /// has reached the coordinator.
  static constexpr std::size_t kRemembered = 1024;
  /// Where the coordinator may be killed and have all run again that came after its last recorded step: more
  /// than those are (cluster::kMostOpenClosures).
  static constexpr std::size_t kRememberedForTheCoordinator = 64 * kRemembered;
  /// Closures of dead workers that are kept, for each that is remembered of one that lives; the oldest is
  /// forgotten first.
  static constexpr std::size_t kMostOfTheDead = 64;

  struct Count {
    std::uint64_t closure = 0;
    std::uint64_t replica = 0;
    std::uint64_t entries = 0;  // the position of the first that has not been applied
  };
  /// Of one worker: how many closures its replicas have begun, of which the last is at (begun - 1) %
  /// remembered of the counts. All zero at first.
  struct Row {
    std::uint64_t* begun = nullptr;
    std::span<Count> counts;

    Count& last() const { return counts[(*begun - 1) % counts.size()]; }
    /// Of the closure that the worker has begun last; null where the entry is of another.
    Count* find(const shard::PushHeader& header) const;
  };
  static constexpr std::size_t row_bytes(std::size_t remembered) noexcept {
    return sizeof(std::uint64_t) * 2 + remembered * sizeof(Count);
  }

  /// `rows`: row_bytes(remembered) for each rank, aligned to 8 bytes, which may have been filled by a process
  /// that is dead; empty: its own.
  explicit ClosureLedger(std::span<std::byte> rows = {}, std::size_t remembered = kRemembered)
      : kept_(rows), remembered_(remembered) {}

  /// False when an earlier run of the closure has had this entry applied.
  bool enter(const shard::PushHeader& header);
  /// Up to which position entries of the closure's replica have been applied, as far as its pusher is
  /// concerned.
  std::uint64_t entered(const shard::PushHeader& header) const;
  /// The entry, of the closure that its pusher began last, has been undone: `entered` is what it was before.
  void set_entered(const shard::PushHeader& header, std::uint64_t entries);
  /// The worker has died.
  void close(int rank);
  /// Any worker may run again what another one that lives has run.
  void gather();
  /// None of a smaller number is run again.
  void forget_before(std::uint64_t closure);

 private:
  Row row(std::size_t rank);
  Row row_or_none(std::size_t rank) const;
  Row row_at(std::byte* at) const;
  std::size_t ranks() const noexcept;

  std::span<std::byte> kept_;
  std::size_t remembered_;
  std::vector<std::unique_ptr<std::byte[]>> own_;       // by rank
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // closure, replica
  std::map<Key, std::uint64_t> of_the_dead_;            // entries
  std::deque<Key> order_;                               // of `of_the_dead_`
  std::uint64_t floor_ = 0;                             // the first that may run again
};

}  // namespace capstan::store
