// read_channel.hpp -- how a client reads the memory of one ps process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "client/channel/ps_session.hpp"
#include "protocol/ps_messages.hpp"

namespace capstan::client {

/// Asks a ps how far the workers of update group `group` are. Throws what PsSession::call does.
protocol::GroupClocks group_clocks(PsSession& session, std::uint32_t group);

/// Rows that no channel reaches are read by messages (RemoteReads). A channel does not look whether the ps
/// lives: ask PsConnection::alive after a read. Used by the thread that owns the data fabric.
class ReadChannel {
 public:
  virtual ~ReadChannel() = default;

  /// Returns the address of memory of the ps; nullptr where it is not mapped. Valid until the ps's memory is
  /// lost (PsSession::relocations).
  virtual const std::byte* mapped(std::uint64_t /*region*/, std::uint64_t /*offset*/) { return nullptr; }
  /// Copies memory of the ps into `out` by RMA; false, and nothing is copied, where RMA is not the path.
  /// Throws Error: unavailable, deadline_exceeded.
  virtual bool read(std::uint64_t /*region*/, std::uint64_t /*offset*/, std::span<std::byte> /*out*/) {
    return false;
  }
  /// Number of steps of update group `group` that every worker it waits for has ended. Throws as read().
  virtual std::uint64_t steps(std::uint32_t group) = 0;
};

/// Loads from mapped memory.
class MappedReadChannel final : public ReadChannel {
 public:
  /// REQUIRES, of all channels: `session` is connected, and outlives the channel.
  explicit MappedReadChannel(PsSession& session) : session_(session) {}

  const std::byte* mapped(std::uint64_t region, std::uint64_t offset) override {
    return session_.window(region).mapped() + offset;
  }
  std::uint64_t steps(std::uint32_t group) override { return session_.board().steps(group); }

 private:
  PsSession& session_;
};

/// An adapter, or UCX's emulation of one, reads the memory.
class RmaReadChannel final : public ReadChannel {
 public:
  explicit RmaReadChannel(PsSession& session) : session_(session) {}

  bool read(std::uint64_t region, std::uint64_t offset, std::span<std::byte> out) override {
    session_.window(region).get(offset, out, transport::deadline_in(session_.timeout()));
    return true;
  }
  std::uint64_t steps(std::uint32_t group) override { return session_.board().steps(group); }

 private:
  PsSession& session_;
};

/// The ps serves every read.
class MessageReadChannel final : public ReadChannel {
 public:
  explicit MessageReadChannel(PsSession& session) : session_(session) {}

  std::uint64_t steps(std::uint32_t group) override { return group_clocks(session_, group).steps; }

 private:
  PsSession& session_;
};

}  // namespace capstan::client
