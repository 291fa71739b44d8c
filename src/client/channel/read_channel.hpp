// read_channel.hpp -- reads the memory of one ps process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "client/channel/ps_session.hpp"
#include "protocol/ps_messages.hpp"

namespace capstan::client {

/// Asks the ps for the number of steps that each member of update group `group` has completed. Throws the
/// same errors as PsSession::call.
protocol::GroupClocks group_clocks(PsSession& session, std::uint32_t group);

/// Direct access to the memory of one ps, if there is any. RemoteReads reads, by messages, the rows that a
/// channel cannot access. A channel does not check whether the ps is alive: call PsConnection::alive after a
/// read. Used by the thread that owns the data fabric. Derived classes REQUIRE that `session` is connected
/// and outlives the channel.
class ReadChannel {
 public:
  virtual ~ReadChannel() = default;

  /// Returns the address of byte `offset` of a region of the ps (PsSession::window); nullptr if this channel
  /// maps no memory. Valid until the ps's memory is lost (PsSession::relocations).
  virtual const std::byte* mapped(std::uint64_t /*region*/, std::uint64_t /*offset*/) { return nullptr; }
  /// Like mapped(), but the memory stays mapped for the lifetime of the returned pointer.
  virtual std::shared_ptr<const std::byte> shared(std::uint64_t /*region*/, std::uint64_t /*offset*/) {
    return nullptr;
  }
  /// Copies bytes of a region, from `offset` on, into `out` by RMA. Returns false without copying if this
  /// channel does not use RMA. Throws Error: unavailable, deadline_exceeded.
  virtual bool read(std::uint64_t /*region*/, std::uint64_t /*offset*/, std::span<std::byte> /*out*/) {
    return false;
  }
  /// Returns the number of steps that every member of update group `group` has completed: the minimum over
  /// the members. Throws the same errors as read().
  virtual std::uint64_t steps(std::uint32_t group) = 0;
};

/// Reads by loads from mapped memory.
class MappedReadChannel final : public ReadChannel {
 public:
  explicit MappedReadChannel(PsSession& session) : session_(session) {}

  const std::byte* mapped(std::uint64_t region, std::uint64_t offset) override {
    return session_.window(region).mapped() + offset;
  }
  std::shared_ptr<const std::byte> shared(std::uint64_t region, std::uint64_t offset) override {
    const std::shared_ptr<const std::byte> memory = session_.window(region).shared();
    return memory == nullptr ? nullptr : std::shared_ptr<const std::byte>(memory, memory.get() + offset);
  }
  std::uint64_t steps(std::uint32_t group) override { return session_.board().steps(group); }

 private:
  PsSession& session_;
};

/// Reads by RMA, which the network adapter performs or UCX emulates.
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

/// Has no direct access: the ps serves all reads.
class MessageReadChannel final : public ReadChannel {
 public:
  explicit MessageReadChannel(PsSession& session) : session_(session) {}

  std::uint64_t steps(std::uint32_t group) override { return group_clocks(session_, group).steps; }

 private:
  PsSession& session_;
};

}  // namespace capstan::client
