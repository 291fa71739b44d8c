// ring_reader.hpp -- the ps's end of the push rings.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "protocol/ps_messages.hpp"
#include "protocol/push_format.hpp"
#include "ps/durability/persistent_state.hpp"
#include "ps/durability/replica_stream.hpp"
#include "ps/shard/heap.hpp"

namespace capstan::ps {

/// Used by the thread of the ps.
class RingReader {
 public:
  /// `board`: that of this ps, for `ranks` ranks. Rings are recorded in the manifest of `persistent`, if any.
  /// Published entries are sent to `replica`, if any, and applied once it has them.
  RingReader(std::byte* board, std::uint64_t ranks, Heap& heap, protocol::PushSink& sink,
             PersistentState* persistent = nullptr, ReplicaStream* replica = nullptr)
      : board_(board), layout_(ranks), heap_(heap), sink_(sink), persistent_(persistent), replica_(replica) {}

  /// Recovers the rings of the process before this one, with their entries. REQUIRES: the heap was recovered.
  void recover();

  /// Opens a ring of `bytes` for a rank, reusing a released one. Returns the ring that it has if it has one.
  protocol::RingLocation open(int rank, std::uint64_t bytes);
  /// Applies what the rank has published, closes its ring and fences the rank: its word on the board becomes
  /// protocol::kFenced. Unpublished entries are lost; a push of which only a part was published stays
  /// incomplete.
  void close(int rank);
  /// Lets another rank reuse the closed ring of a rank. REQUIRES: its connection has ended, so that it writes
  /// no more.
  void release(int rank);

  /// Resets the words of a rank whose process was replaced. REQUIRES: the ring of the earlier process was
  /// closed and released.
  void reset(int rank);

  /// Applies everything that the rank has published.
  void settle(int rank);
  /// Returns how many bytes of the rank's entries have been applied, if it has a ring.
  std::optional<std::uint64_t> applied(int rank) const;

  /// Applies published entries, at most `kMaxBatch` per ring. Returns true if there were any.
  bool apply_some();
  /// Returns true if published entries can be applied.
  bool has_work() const;
  std::size_t open_rings() const noexcept { return rings_.size(); }

 private:
  struct Ring {
    int rank = 0;
    Piece piece;
    std::uint64_t bytes = 0;
    std::uint64_t applied = 0;
    protocol::UnfinishedPush unfinished = {};
    // With a replica:
    std::uint64_t told = 0;                                           // bytes
    std::deque<std::pair<std::uint64_t, std::uint64_t>> unsafe = {};  // where an entry begins; its record
  };
  /// An entry in a ring.
  struct Entry {
    protocol::PushHeader header;
    const std::byte* rest = nullptr;  // what follows the header
  };
  /// Entries applied before the next ring has its turn, so that one pusher cannot starve the others.
  static constexpr int kMaxBatch = 16;
  /// The same for entries whose gradients are in GPU memory, of which so many take no longer.
  static constexpr int kMaxStagedBatch = 256;

  static void replay(const PersistentState& persistent, std::vector<Ring>& open, std::vector<Ring>& closed,
                     std::vector<Ring>& unused);
  bool apply_from(Ring& ring, bool whatever_waits);
  /// Returns the entry at `position`, or nothing if its size is impossible. `tail`: end of the last entry.
  static std::optional<Entry> entry_at(const Ring& ring, std::uint64_t position, std::uint64_t tail);
  void tell(Ring& ring, std::uint64_t tail);
  /// Returns the end of the entries that may be applied.
  std::uint64_t safe_tail(Ring& ring, std::uint64_t tail);
  std::uint64_t tail_of(const Ring& ring) const noexcept;

  std::byte* board_;
  protocol::BoardLayout layout_;
  Heap& heap_;
  protocol::PushSink& sink_;
  PersistentState* persistent_;
  ReplicaStream* replica_;
  std::vector<Ring> rings_;
  std::vector<Ring> closed_;
  std::vector<Ring> unused_;
};

}  // namespace capstan::ps
