// ring_push_channel.hpp -- pushes through a ring in the ps's memory, mapped or written by RMA.
#pragma once

#include <cstdint>
#include <vector>

#include "client/channel/ps_session.hpp"
#include "client/channel/push_channel.hpp"
#include "client/channel/push_ring.hpp"
#include "client/channel/store_choice.hpp"

namespace capstan::client {

/// Opens the ring with the first push. Entries beyond the published tail do not exist for the ps.
class RingPushChannel final : public PushChannel {
 public:
  /// REQUIRES: `session` is connected and outlives the channel.
  explicit RingPushChannel(PsSession& session)
      : session_(session),
        ring_(session.process().ring_bytes, session.process().applied),
        relocations_(session.relocations()) {}

  void push(const PushRows& push, PushNumbering& numbering, bool more) override;
  void send(protocol::PushHeader header) override;
  void publish() override;
  std::uint64_t pushed() const noexcept override { return ring_.tail(); }
  std::uint64_t known_applied() const noexcept override;
  bool applied(std::uint64_t position) override;
  void wait(std::uint64_t position) override;
  void require_accepted() override { refresh_applied(); }

  // For StagedGpuPushChannel, which shares the ring:

  PushRing& ring() noexcept { return ring_; }
  /// Ensures that the ps is alive, and opens the ring unless it is open.
  void prepare();
  /// Blocks until an entry of `bytes` bytes can be written at the tail.
  void reserve(std::uint64_t bytes);
  /// Reads the applied position from the board.
  void refresh_applied();

 private:
  void write_entry(const PushRows& push, std::uint64_t first, std::uint64_t count, PushNumbering& numbering);
  void wait_for_capacity(std::uint64_t bytes);
  void signal_doorbell();

  PsSession& session_;
  PushRing ring_;
  const std::uint64_t relocations_;  // of the session, when the channel was created
  std::vector<std::byte> entry_;     // buffer for a ring that is not mapped
  StoreChoice stores_;               // for a mapped ring
};

}  // namespace capstan::client
