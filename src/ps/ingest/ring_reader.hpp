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

/// Applies entries that clients write to their rings. Used by the ps's thread only.
class RingReader {
 public:
  /// `board`: the board of this ps, for `ranks` ranks. Rings are recorded in the manifest of `persistent`, if
  /// any. Published entries are sent to `replica`, if any, and applied once the replica has applied them. The
  /// arguments must outlive this object.
  RingReader(std::byte* board, std::uint64_t ranks, Heap& heap, protocol::PushSink& sink,
             PersistentState* persistent = nullptr, ReplicaStream* replica = nullptr)
      : board_(board), layout_(ranks), heap_(heap), sink_(sink), persistent_(persistent), replica_(replica) {}

  /// Recovers the rings of the previous process and their entries. REQUIRES: the heap was recovered.
  void recover();

  /// Opens a ring of `bytes` for a rank, reusing a released ring of that size. If the rank already has a
  /// ring, returns that one. Throws Error(resource_exhausted).
  protocol::RingLocation open(int rank, std::uint64_t bytes);
  /// Applies the entries that the rank has published, closes its ring and fences the rank: its word on the
  /// board becomes protocol::kFenced. Unpublished entries are lost; a push of which only a part was published
  /// stays incomplete.
  void close(int rank);
  /// Makes the closed ring of a rank available to other ranks. REQUIRES: the connection to the rank has
  /// ended, so that it no longer writes.
  void release(int rank);

  /// Resets the board's words of a rank whose process was replaced. REQUIRES: the ring of the old process was
  /// closed and released.
  void reset(int rank);

  /// Applies all entries that the rank has published, without waiting for the replica or for readers.
  void settle(int rank);
  /// Returns the number of bytes of the rank's entries that have been applied, if it has a ring.
  std::optional<std::uint64_t> applied(int rank) const;

  /// Applies published entries, a bounded batch per ring. Returns true if there were any.
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
    std::uint64_t sent = 0;  // position up to which entries were sent
    // Position of each entry that the replica has not applied, and number of its record.
    std::deque<std::pair<std::uint64_t, std::uint64_t>> unreplicated = {};
  };
  /// An entry in a ring.
  struct Entry {
    protocol::PushHeader header;
    const std::byte* rest = nullptr;  // the part after the header
  };
  /// Maximum number of entries applied per turn of a ring, so that one pusher cannot starve the others.
  static constexpr int kMaxBatch = 16;
  /// The same for entries whose gradients are in staging buffers: they take less time, so the limit is
  /// higher.
  static constexpr int kMaxStagedBatch = 256;

  static void replay(const PersistentState& persistent, std::vector<Ring>& open, std::vector<Ring>& closed,
                     std::vector<Ring>& unused);
  bool apply_from(Ring& ring, bool force);
  /// Returns the entry at `position`, or nullopt if its size is invalid. `tail`: end of the last entry.
  static std::optional<Entry> entry_at(const Ring& ring, std::uint64_t position, std::uint64_t tail);
  void send_to_replica(Ring& ring, std::uint64_t tail);
  /// Sends new entries to the replica. Returns the end of the entries that it has applied; `tail` without a
  /// replica.
  std::uint64_t replicated_tail(Ring& ring, std::uint64_t tail);
  std::uint64_t tail_of(const Ring& ring) const noexcept;

  std::byte* board_;
  protocol::BoardLayout layout_;
  Heap& heap_;
  protocol::PushSink& sink_;
  PersistentState* persistent_;
  ReplicaStream* replica_;
  std::vector<Ring> rings_;   // open
  std::vector<Ring> closed_;  // fenced, but processes may still write to these rings
  std::vector<Ring> unused_;  // released
};

}  // namespace capstan::ps
