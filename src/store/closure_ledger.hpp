// closure_ledger.hpp -- what a closure has had applied here, so that a second run of it applies the rest
// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "shard/push_format.hpp"

namespace capstan::store {

/// A worker that dies may have begun closures, or ended some without a word of it reaching the coordinator,
/// which has them run again elsewhere. Entries of a closure are numbered from 0 for each ps, and applied in
/// order, so their count is all that has to be known: of the second run the first so many are left out. Each
/// push of a closure that pushes the same things in the same order counts exactly once, whoever dies when.
///
/// REQUIRES: a closure's second run pushes after close() of the worker of the first.
class ClosureLedger {
 public:
  /// A worker holds no more closures than --max-inflight-per-worker, so what it ended before the last so many
  /// has reached the coordinator.
  static constexpr std::size_t kRemembered = 1024;
  /// Closures of dead workers that are kept; the oldest is forgotten first.
  static constexpr std::size_t kMostOfTheDead = 64 * kRemembered;

  struct Count {
    std::uint64_t closure = 0;
    std::uint64_t entries = 0;
  };
  /// Of one worker; `begun` closures in all, the last of them at (begun - 1) % kRemembered. All zero at
  /// first.
  struct Row {
    std::uint64_t begun = 0;
    Count counts[kRemembered];
  };

  /// `rows`: memory for all ranks, which may have been filled by a process that is dead; empty: its own.
  explicit ClosureLedger(std::span<Row> rows = {}) : kept_(rows) {}

  /// False when an earlier run of the closure has had this entry applied.
  bool enter(const shard::PushHeader& header);
  /// Entries of the closure that have been applied, as far as its pusher is concerned.
  std::uint64_t entered(const shard::PushHeader& header) const;
  /// The entry, of the closure that its pusher began last, has been undone: `entered` is what it was before.
  void set_entered(const shard::PushHeader& header, std::uint64_t entries);
  /// The worker has died.
  void close(int rank);

 private:
  Row& row(std::size_t rank);
  const Count* last_of(std::size_t rank) const;

  std::span<Row> kept_;
  std::vector<std::unique_ptr<Row>> own_;                         // by rank
  std::unordered_map<std::uint64_t, std::uint64_t> of_the_dead_;  // entries, by closure
  std::deque<std::uint64_t> order_;                               // of `of_the_dead_`
};

}  // namespace capstan::store
