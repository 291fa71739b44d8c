// message_push_channel.hpp -- pushes as active messages, with a bound on the bytes in flight.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "client/channel/ps_session.hpp"
#include "client/channel/push_channel.hpp"

namespace capstan::client {

/// Sends dense gradients of complete cache lines from the caller's memory, and other entries from buffers
/// of this channel. The ps acknowledges entries by kPushApplied (PsSession::acknowledged).
class MessagePushChannel final : public PushChannel {
 public:
  /// REQUIRES: `session` is connected and outlives the channel.
  explicit MessagePushChannel(PsSession& session)
      : session_(session),
        ring_bytes_(session.process().ring_bytes),
        tail_(session.process().applied),
        relocations_(session.relocations()) {}
  /// Leaks the buffers that the transport still reads.
  ~MessagePushChannel() override;
  MessagePushChannel(const MessagePushChannel&) = delete;
  MessagePushChannel& operator=(const MessagePushChannel&) = delete;

  void push(const PushRows& push, PushNumbering& numbering, bool more) override;
  void send(protocol::PushHeader header) override;
  void publish() override {}
  std::uint64_t pushed() const noexcept override { return tail_; }
  std::uint64_t known_applied() const noexcept override;
  bool applied(std::uint64_t position) override;
  void wait(std::uint64_t position) override;
  void require_accepted() override;

 private:
  /// The body of an entry in flight.
  struct SendBuffer {
    std::uint32_t in_flight = 0;
    std::vector<std::byte> bytes;
  };

  void send_entries(const PushRows& push, PushNumbering& numbering);
  void send_entry(const PushRows& push, std::uint64_t first, std::uint64_t count, PushNumbering& numbering);
  SendBuffer& free_send_buffer();
  void reclaim_gradient();
  /// Maximum bytes of entries in flight. More than a ring holds, since a round trip takes longer.
  std::uint64_t capacity() const noexcept { return 8 * ring_bytes_; }
  void wait_for_capacity(std::uint64_t bytes);

  PsSession& session_;
  std::uint64_t ring_bytes_;         // --push-ring-bytes of the ps
  std::uint64_t tail_;               // bytes of entries sent
  const std::uint64_t relocations_;  // of the session, when the channel was created
  std::vector<std::unique_ptr<SendBuffer>> send_buffers_;
  /// Number of messages for which the transport still reads the caller's gradient. The transport may
  /// decrement it after this object is destroyed.
  std::unique_ptr<std::uint32_t> from_gradient_ = std::make_unique<std::uint32_t>(0);
};

}  // namespace capstan::client
