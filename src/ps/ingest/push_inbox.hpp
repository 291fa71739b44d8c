// push_inbox.hpp -- pushes that arrive as messages, from ranks that cannot write the memory of the ps.
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

/// Entries are applied straight from the message if possible. A pusher has at most as many bytes in flight as
/// a ring would hold, which bounds the entries that wait here.
class PushInbox {
 public:
  /// Tells a rank how many bytes of its entries have been applied.
  using Acknowledge = std::function<void(int rank, std::uint64_t bytes)>;

  /// Positions are recorded in `persistent`, if any. Entries are sent to `replica`, if any, and applied once
  /// it has them.
  PushInbox(protocol::PushSink& sink, Acknowledge acknowledge, PersistentState* persistent = nullptr,
            ReplicaStream* replica = nullptr)
      : sink_(sink), acknowledge_(std::move(acknowledge)), persistent_(persistent), replica_(replica) {}

  /// Recovers the unfinished pushes of ranks without a ring: their closures run again, or the ranks are
  /// closed.
  void recover(const std::function<bool(int rank)>& has_ring);
  /// Returns true if the rank has pushed.
  bool knows(int rank) const { return pushers_.contains(rank); }
  /// Applies all entries of the rank that have arrived. Returns how many bytes have been applied.
  std::uint64_t settle(int rank);

  /// Handles a kPushEntry message; called inside progress().
  void receive(const transport::Message& message);
  /// Applies entries that had to wait, and acknowledges. Returns true if there was anything to do.
  bool apply_some();
  /// Applies the complete entries of a dead rank that have arrived. Returns false if it never pushed.
  bool close(int rank);

 private:
  struct Entry {
    protocol::PushHeader header;
    std::vector<std::byte> payload;
    std::uint64_t record = 0;  // number of the replica's record
  };
  struct Pusher {
    std::uint64_t applied = 0;  // bytes
    bool acknowledge = false;
    std::deque<Entry> waiting;
    protocol::UnfinishedPush unfinished;
  };

  Pusher& pusher(int rank);
  /// The next entry ends a push that its pusher has given up, so a read that waits for the end must not block
  /// it.
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
  bool news_ = false;              // an acknowledgement or an entry is pending
};

/// Applies the complete entries of a dead rank, and fences it. Messages are applied first: applying one
/// stores the rank's position, which would overwrite the fence that closing the ring stores.
void close_pusher(int rank, PushInbox& inbox, RingReader& rings);

}  // namespace capstan::ps
