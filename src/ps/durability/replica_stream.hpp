// replica_stream.hpp -- a ps's end of the stream to its replica: what has been told, and how much of it is
// safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "protocol/push_format.hpp"
#include "protocol/replica_format.hpp"
#include "transport/fabric.hpp"

namespace capstan::ps {

/// Primary and backup, as in Alsberg and Day, "A principle for resilient sharing of distributed resources"
/// (1976): whatever changes the state of a ps is told to the replica first, in one order, and done and
/// acknowledged here when the replica has done it. What a pusher knows to be applied is in both.
///
/// One thread, the ps's.
class ReplicaStream {
 public:
  explicit ReplicaStream(transport::Peer& replica) : replica_(replica) {}

  const transport::Peer& peer() const noexcept { return replica_; }

  /// Both return the record's number. An entry of a push, of rank header.rank; `rest` is what follows the
  /// header, and may be reused on return.
  std::uint64_t push(const protocol::PushHeader& header, transport::Bytes rest);
  /// A request of that type, of rank `from`.
  std::uint64_t call(std::uint16_t type, int from, transport::Bytes request);

  /// The replica has done it, or there is no replica any more.
  bool safe(std::uint64_t number) const noexcept { return ended_ || number <= done_.number; }
  /// A kReplicated message.
  void take(const protocol::ReplicaProgress& progress) noexcept { done_ = progress; }
  /// Calls that the replica has refused so far.
  std::uint64_t refused() const noexcept { return done_.refused; }
  /// It is at a call, which may take its time.
  bool busy() const noexcept { return done_.busy != 0; }
  /// It has answered something.
  bool begun() const noexcept { return done_.number != 0 || busy(); }
  /// The replica has something to do.
  bool waits() const noexcept { return !safe(told_); }
  /// From now on everything is safe here alone.
  void end() noexcept { ended_ = true; }
  bool ended() const noexcept { return ended_; }

  /// Does it when all that has been told so far is safe, in one of the next calls of `advance`.
  void when_safe(std::function<void()> then) { later_.emplace_back(told_, std::move(then)); }
  /// True when there was something to do.
  bool advance();

 private:
  transport::Peer& replica_;
  std::uint64_t told_ = 0;
  protocol::ReplicaProgress done_;
  bool ended_ = false;
  std::deque<std::pair<std::uint64_t, std::function<void()>>> later_;
};

}  // namespace capstan::ps
