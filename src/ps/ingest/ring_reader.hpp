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

class RingReader {
 public:
  /// `board` is this ps's board for `ranks` ranks.
  /// Rings that are in `kept` are noted there. What is published is told to `replica`, and applied when it is
  /// safe there.
  RingReader(std::byte* board, std::uint64_t ranks, Heap& heap, protocol::PushSink& sink,
             PersistentState* kept = nullptr, ReplicaStream* replica = nullptr)
      : board_(board), layout_(ranks), heap_(heap), sink_(sink), kept_(kept), replica_(replica) {}

  /// The rings of an earlier process, with what lies in them. REQUIRES: the heap has been recovered.
  void recover();

  /// A ring of `bytes` for one rank; the one that it has when it asks again. A ring that was released is used
  /// again.
  protocol::RingLocation open(int rank, std::uint64_t bytes);
  /// Applies what the rank has published, then takes the ring back. Nothing of its unpublished entries
  /// counts, and a push of which only a part was published stays a part. A rank that lives learns it from its
  /// word on the board: protocol::kFenced.
  void close(int rank);
  /// Nothing writes into the closed ring of that rank any more: the connection to it has ended.
  void release(int rank);

  /// That rank is another process now, which has no ring. REQUIRES: the earlier one's was closed and
  /// released.
  void begin_anew(int rank);

  /// Applies what the rank has published.
  void settle(int rank);
  /// How many bytes of its entries have been applied, where it has a ring.
  std::optional<std::uint64_t> applied(int rank) const;

  /// Applies what lies in the rings, at most `kMaxBatch` entries a ring; true when there was something.
  bool apply_some();
  /// Something is published that has not been applied.
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
  /// An entry as it lies in a ring.
  struct Entry {
    protocol::PushHeader header;
    const std::byte* rest = nullptr;  // what follows the header
  };
  /// Then the next ring, so that one pusher cannot starve the others.
  static constexpr int kMaxBatch = 16;
  /// The same of entries whose gradients are in the GPU's memory, of which so many take no longer.
  static constexpr int kMaxBatchInRooms = 256;

  static void replay(const PersistentState& kept, std::vector<Ring>& open, std::vector<Ring>& closed,
                     std::vector<Ring>& unused);
  bool apply_from(Ring& ring, bool whatever_waits);
  /// The entry at `position`, of which `tail` is the end of the last; nothing where none makes sense.
  static std::optional<Entry> entry_at(const Ring& ring, std::uint64_t position, std::uint64_t tail);
  void tell(Ring& ring, std::uint64_t tail);
  /// How far entries may be applied.
  std::uint64_t safe_tail(Ring& ring, std::uint64_t tail);
  std::uint64_t tail_of(const Ring& ring) const noexcept;

  std::byte* board_;
  protocol::BoardLayout layout_;
  Heap& heap_;
  protocol::PushSink& sink_;
  PersistentState* kept_;
  ReplicaStream* replica_;
  std::vector<Ring> rings_;
  std::vector<Ring> closed_;
  std::vector<Ring> unused_;
};

}  // namespace capstan::ps
