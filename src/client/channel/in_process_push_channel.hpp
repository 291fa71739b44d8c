// in_process_push_channel.hpp -- pushes to a ps in this process by calling its store.
#pragma once

#include <cstdint>
#include <vector>

#include "client/channel/push_channel.hpp"

namespace capstan::client {

/// On return a push has been applied, except for asynchronous GPU work. The only position is 1.
class InProcessPushChannel final : public PushChannel {
 public:
  /// `rank` is the rank of this client, `ps` the index of the ps. `sink` must outlive the channel.
  InProcessPushChannel(protocol::PushSink& sink, int rank, int ps) : sink_(sink), rank_(rank), ps_(ps) {}

  void push(const PushRows& push, PushNumbering& numbering, bool more) override;
  void send(protocol::PushHeader header) override;
  void publish() override {}
  std::uint64_t pushed() const noexcept override { return 1; }
  std::uint64_t known_applied() const noexcept override { return sink_.unsettled() ? 0 : 1; }
  bool applied(std::uint64_t /*position*/) override { return idle(); }
  void wait(std::uint64_t /*position*/) override { sink_.settle(); }
  void require_accepted() override {}

 private:
  protocol::PushSink& sink_;
  int rank_;
  int ps_;
  std::vector<std::byte> gathered_;  // gradient rows, made consecutive
  std::vector<std::uint32_t> row_numbers_;
};

}  // namespace capstan::client
