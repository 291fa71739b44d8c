// push_inbox.hpp -- the ps's end of pushes that come as messages, from ranks that cannot write its memory.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "protocol/push_format.hpp"
#include "ps/durability/persistent_state.hpp"
#include "ps/durability/replica_stream.hpp"
#include "ps/ingest/ring_reader.hpp"
#include "transport/fabric.hpp"

namespace capstan::ps {

/// An entry is applied straight from the message. Its pusher never has more bytes under way than a ring would
/// hold, so what has to wait here is bounded by that.
class PushInbox {
 public:
  /// Says to a rank how many bytes of its entries have been applied.
  using Acknowledge = std::function<void(int rank, std::uint64_t bytes)>;

  /// How far each rank's entries have been applied is noted in `kept`, too. What comes is told to `replica`,
  /// and applied when it is safe there.
  PushInbox(protocol::PushSink& sink, Acknowledge acknowledge, PersistentState* kept = nullptr,
            ReplicaStream* replica = nullptr)
      : sink_(sink), acknowledge_(std::move(acknowledge)), kept_(kept), replica_(replica) {}

  /// Pushes that ranks were in the middle of when the earlier process died: their closures run again, or they
  /// are closed. `has_ring`: the rank's pushes come by its ring.
  void recover(const std::function<bool(int rank)>& has_ring);
  /// The rank has pushed.
  bool knows(int rank) const { return pushers_.contains(rank); }
  /// Bytes of the rank's entries that have been applied, after all that has come.
  std::uint64_t settle(int rank);

  /// A kPushEntry message; runs inside progress().
  void receive(const transport::Message& message);
  /// Applies what had to wait, and acknowledges; true when there was something.
  bool apply_some();
  /// The rank counts as dead: what has arrived whole is applied. False when it has never pushed.
  bool close(int rank);

 private:
  struct Entry {
    protocol::PushHeader header;
    std::vector<std::byte> payload;
    std::uint64_t record = 0;  // what the replica was told
  };
  struct Pusher {
    std::uint64_t applied = 0;  // bytes
    bool acknowledge = false;
    std::deque<Entry> waiting;
    protocol::UnfinishedPush unfinished;
  };

  Pusher& pusher(int rank);
  /// A push that its pusher has given up ends with the next entry, whatever that begins: a read that waits
  /// for the end must not hold it back.
  bool ready(const Pusher& pusher, const protocol::PushHeader& header) {
    return pusher.unfinished.open() || sink_.ready(header);
  }
  bool may_apply(const Pusher& pusher, const Entry& entry) {
    return (replica_ == nullptr || replica_->safe(entry.record)) && ready(pusher, entry.header);
  }
  void apply(int rank, Pusher& pusher, const protocol::PushHeader& header, transport::Bytes payload);

  protocol::PushSink& sink_;
  Acknowledge acknowledge_;
  PersistentState* kept_;
  ReplicaStream* replica_;
  std::map<int, Pusher> pushers_;  // by rank
  bool news_ = false;              // somebody waits for an acknowledgement, or an entry for its turn
};

/// Applies what a dead rank has pushed whole, and fences it. Messages are applied first: applying one stores
/// the rank's position, which would overwrite the fence that closing the ring stores.
void close_pusher(int rank, PushInbox& inbox, RingReader& rings);

}  // namespace capstan::ps
