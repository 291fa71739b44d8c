// board.hpp -- the board of a ps: registered words that clients read, and counters that they add to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "protocol/push_format.hpp"
#include "transport/fabric.hpp"
#include "transport/memory/word.hpp"

namespace capstan::ps {

/// Accesses the words of protocol::BoardLayout by name. Clients add to counters concurrently, so counters
/// change atomically; everything else is used by the ps's thread only.
class Board {
 public:
  /// `memory` has BoardLayout(ranks).bytes() bytes; its contents are kept.
  Board(std::unique_ptr<transport::Region> memory, std::uint64_t ranks)
      : memory_(std::move(memory)), layout_(ranks) {}

  transport::RegionKey key() const { return memory_->key(); }
  std::byte* data() const { return memory_->memory().data(); }
  std::byte* liveness_word() const { return data() + layout_.liveness_word(); }
  /// 1 while the ps sleeps until a doorbell.
  auto asleep() const { return transport::word_at(data() + layout_.asleep()); }

  /// Publishes the number of steps that all workers of an update group have completed. Group numbers start at
  /// 1.
  void set_steps(std::uint32_t group, std::uint64_t steps);
  /// Returns the value before the addition. Throws Error(out_of_range).
  std::uint64_t fetch_add(std::uint64_t counter, std::uint64_t delta);
  /// Adds `delta` for journal entry `entry`. The same atomic operation stores the number of the entry, so
  /// that recovery can tell whether an uncommitted entry was added. REQUIRES: has_counter(counter).
  void add_by_entry(std::uint64_t counter, std::uint64_t delta, std::uint64_t entry);
  /// Undoes add_by_entry(counter, delta, entry) if it was the last add_by_entry on this counter. REQUIRES:
  /// has_counter(counter).
  void undo_entry(std::uint64_t counter, std::uint64_t delta, std::uint64_t entry);

  static bool has_counter(std::uint64_t counter) noexcept {
    return counter < protocol::BoardLayout::kCounters;
  }

 private:
  std::unique_ptr<transport::Region> memory_;
  protocol::BoardLayout layout_;
};

}  // namespace capstan::ps
