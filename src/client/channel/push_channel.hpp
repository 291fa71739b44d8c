// push_channel.hpp -- how pushes travel to one ps process, whichever transport carries them.
#pragma once

#include <cstdint>

#include "client/channel/push_rows.hpp"
#include "client/push_numbering.hpp"
#include "protocol/push_format.hpp"

namespace capstan::client {

/// Entries are applied in the order in which they were pushed. A channel belongs to one process of the ps
/// and is replaced, with what was in flight, when the ps's memory is lost. Used by the thread that owns the
/// data fabric. A call that meets a dead ps reconnects, as PsSession::require_alive says. Throws Error:
/// unavailable (the ps died), deadline_exceeded, aborted (this rank counts as dead).
class PushChannel {
 public:
  virtual ~PushChannel() = default;

  /// Sends a push, in several entries if it is large; blocks while the channel is full. The gradient may be
  /// reused on return, also after an error. With `more`, the ps need not see it before publish(). REQUIRES:
  /// neither `push.count` nor `push.row_bytes` is 0.
  virtual void push(const PushRows& push, PushNumbering& numbering, bool more) = 0;
  /// Sends an entry that consists of a header; sets its `rank` and `bytes`.
  virtual void send(protocol::PushHeader header) = 0;
  /// Makes everything pushed so far visible to the ps.
  virtual void publish() = 0;
  /// Position behind everything pushed so far, for `applied` and `wait`.
  virtual std::uint64_t pushed() const noexcept = 0;
  /// Returns true once the ps has applied everything before `position`. Publishes, and does not block.
  virtual bool applied(std::uint64_t position) = 0;
  /// Blocks until the ps has applied everything before `position`.
  virtual void wait(std::uint64_t position) = 0;
  /// Position before which everything is known to be applied, also after the ps's memory was lost.
  virtual std::uint64_t known_applied() const noexcept = 0;
  /// Returns true if nothing is in flight.
  bool idle() const noexcept { return known_applied() >= pushed(); }
  /// Throws Error(aborted) if the ps has fenced this rank.
  virtual void require_accepted() = 0;
};

}  // namespace capstan::client
