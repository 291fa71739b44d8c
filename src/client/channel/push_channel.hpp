// push_channel.hpp -- sends pushes to one ps process, independently of the transport.
#pragma once

#include <cstdint>

#include "client/channel/push_rows.hpp"
#include "client/push_numbering.hpp"
#include "protocol/push_format.hpp"

namespace capstan::client {

/// Entries are applied in push order. A channel belongs to one process of the ps; it is replaced, and loses
/// its entries in flight, when the ps's memory is lost. Used by the thread that owns the data fabric. A
/// call that detects a dead ps reconnects (PsSession::require_alive). Throws Error: unavailable (the ps
/// died), deadline_exceeded, aborted (this rank is fenced).
class PushChannel {
 public:
  virtual ~PushChannel() = default;

  /// Sends a push, as several entries if it is large; blocks while the channel is full. The caller may
  /// reuse the gradient on return, also after an error. With `more`, the push need not be visible to the ps
  /// before publish(). REQUIRES: neither `push.count` nor `push.row_bytes` is 0.
  virtual void push(const PushRows& push, PushNumbering& numbering, bool more) = 0;
  /// Sends an entry that consists of a header; sets its `rank` and `bytes`.
  virtual void send(protocol::PushHeader header) = 0;
  /// Makes everything pushed so far visible to the ps.
  virtual void publish() = 0;
  /// Position after everything pushed so far, for `applied` and `wait`.
  virtual std::uint64_t pushed() const noexcept = 0;
  /// Returns true once the ps has applied everything before `position`. Publishes; does not block.
  virtual bool applied(std::uint64_t position) = 0;
  /// Blocks until the ps has applied everything before `position`.
  virtual void wait(std::uint64_t position) = 0;
  /// Position up to which everything is known to be applied, even after the ps's memory was lost.
  virtual std::uint64_t known_applied() const noexcept = 0;
  /// Returns true if nothing is in flight.
  bool idle() const noexcept { return known_applied() >= pushed(); }
  /// Throws Error(aborted) if the ps has fenced this rank.
  virtual void require_accepted() = 0;
};

}  // namespace capstan::client
