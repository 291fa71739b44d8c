// push_inbox.hpp -- pushes that arrive as messages, from ranks that cannot write to the memory of the ps.
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

/// Applies entries directly from the message if possible. A pusher has at most eight times as many bytes in
/// flight as a ring would hold, which bounds the queue of waiting entries. Used by the ps's thread only.
class PushInbox {
 public:
  /// Acknowledges to a rank the number of bytes of its entries that have been applied.
  using Acknowledge = std::function<void(int rank, std::uint64_t bytes)>;

  /// Positions are recorded in `persistent`, if any. Entries are sent to `replica`, if any, and applied once
  /// the replica has applied them. The arguments must outlive this object.
  PushInbox(protocol::PushSink& sink, Acknowledge acknowledge, PersistentState* persistent = nullptr,
            ReplicaStream* replica = nullptr)
      : sink_(sink), acknowledge_(std::move(acknowledge)), persistent_(persistent), replica_(replica) {}

  /// Recovers the unfinished pushes of ranks without a ring. Each is completed when its closure runs again,
  /// or abandoned when its rank is closed.
  void recover(const std::function<bool(int rank)>& has_ring);
  /// Returns true if the rank has pushed.
  bool knows(int rank) const { return pushers_.contains(rank); }
  /// Applies all entries of the rank that have arrived. Returns the number of bytes applied so far.
  std::uint64_t settle(int rank);

  /// Handles a kPushEntry message; called inside progress().
  void receive(const transport::Message& message);
  /// Applies waiting entries that are ready, and sends acknowledgements. Returns true if there was anything
  /// to do.
  bool apply_some();
  /// Applies the complete entries of a dead rank that have arrived. Returns false if it never pushed.
  bool close(int rank);

 private:
  struct Entry {
    protocol::PushHeader header;
    std::vector<std::byte> payload;
    std::uint64_t record = 0;  // number of the replication record
  };
  struct Pusher {
    std::uint64_t applied = 0;  // bytes
    bool acknowledge = false;   // an acknowledgement is due
    std::deque<Entry> waiting;
    protocol::UnfinishedPush unfinished;
  };

  Pusher& pusher(int rank);
  /// Returns true if the entry may be applied now. While a push is unfinished, the next entry continues or
  /// ends it, so a read that waits for a consistent shard must not block that entry.
  bool ready(const Pusher& pusher, const protocol::PushHeader& header) {
    return pusher.unfinished.open() || sink_.ready(header);
  }
  bool may_apply(const Pusher& pusher, const Entry& entry) {
    return (replica_ == nullptr || replica_->safe(entry.record)) && ready(pusher, entry.header);
  }
  void apply(int rank, Pusher& pusher, const protocol::PushHeader& header, transport::Bytes payload);

  protocol::PushSink& sink_;
  Acknowledge acknowledge_;
  PersistentState* persistent_;
  ReplicaStream* replica_;
  std::map<int, Pusher> pushers_;  // by rank
  bool pending_ = false;           // an acknowledgement or an entry is pending
};

/// Applies the complete entries of a dead rank, and fences it. Messages are applied first: applying one
/// stores the rank's position, which would overwrite the fence that closing the ring stores.
void close_pusher(int rank, PushInbox& inbox, RingReader& rings);

}  // namespace capstan::ps
