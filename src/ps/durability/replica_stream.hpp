// replica_stream.hpp -- the ps's end of the replication stream: sent and acknowledged records.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "protocol/push_format.hpp"
#include "protocol/replica_format.hpp"
#include "transport/fabric.hpp"

namespace capstan::ps {

/// Primary and backup, as in Alsberg and Day, "A principle for resilient sharing of distributed resources"
/// (1976): every change to the state of a ps is sent to the replica first, in one order. The ps applies and
/// acknowledges it once the replica has applied it, so both have every acknowledged push. A record is safe
/// once the replica has applied it, or once the replica was dropped.
///
/// Small records are collected while earlier ones are in flight, as in Nagle's algorithm (RFC 896): a message
/// and its acknowledgement take longer than a record of a few rows. Used by the ps's thread only.
class ReplicaStream {
 public:
  explicit ReplicaStream(transport::Peer& replica) : replica_(replica) {}

  transport::Peer& peer() const noexcept { return replica_; }

  /// Adds a push entry of rank header.rank; `rest` is the part after the header, and may be reused on
  /// return. Returns the number of the record.
  std::uint64_t push(const protocol::PushHeader& header, transport::Bytes rest);
  /// Adds a request of rank `from`. Returns the number of the record.
  std::uint64_t call(std::uint16_t type, int from, transport::Bytes request);
  /// Sends the collected records now.
  void flush();

  /// Returns true if the replica has applied the record, or was dropped.
  bool safe(std::uint64_t number) const noexcept { return dropped_ || number <= progress_.number; }
  /// Handles a kReplicated message.
  void on_progress(const protocol::ReplicaProgress& progress) noexcept { progress_ = progress; }
  /// Number of calls that the replica has refused so far.
  std::uint64_t refused() const noexcept { return progress_.refused; }
  /// Returns true while the replica executes a call, which may take minutes.
  bool busy() const noexcept { return progress_.busy != 0; }
  /// Returns true once the replica has reported any progress.
  bool has_responded() const noexcept { return progress_.number != 0 || busy(); }
  /// Returns true while any record is not safe.
  bool has_pending() const noexcept { return !safe(last_number_); }
  /// Drops the replica: no further records are sent, and all count as safe.
  void drop() noexcept {
    dropped_ = true;
    collected_.clear();
  }
  bool dropped() const noexcept { return dropped_; }

  /// Registers `then`, which advance() calls once all records so far are safe.
  void when_safe(std::function<void()> then) { deferred_.emplace_back(last_number_, std::move(then)); }
  /// Sends the collected records if all earlier ones are safe. REQUIRES: the ps calls this or advance() after
  /// it has added records, before it sleeps.
  void send_if_idle() {
    if (safe(last_sent_)) flush();
  }
  /// Sends the collected records as send_if_idle() does, then calls the functions whose records are safe.
  /// Returns true if there were any. Called in each poll.
  bool advance();

 private:
  /// Maximum size of the records of a message, unless it has only one.
  static constexpr std::size_t kMessageBytes = transport::kPieceBytes;

  /// Adds a record whose body is `head` and `rest`. Returns its number.
  std::uint64_t add(std::uint16_t type, int from, transport::Bytes head, transport::Bytes rest);

  transport::Peer& replica_;
  std::uint64_t last_number_ = 0;     // of the last record, which is not sent if the replica was dropped
  std::uint64_t last_sent_ = 0;       // number of the last record that is not in `collected_`
  std::vector<std::byte> collected_;  // records to send in one message
  protocol::ReplicaProgress progress_;
  bool dropped_ = false;
  std::deque<std::pair<std::uint64_t, std::function<void()>>> deferred_;
};

}  // namespace capstan::ps
