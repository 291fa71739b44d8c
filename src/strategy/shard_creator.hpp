// shard_creator.hpp -- creates the shards of a variable on the ps.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "capstan/variable.hpp"
#include "protocol/ps_messages.hpp"
#include "strategy/context.hpp"
#include "strategy/recovery.hpp"
#include "strategy/shard_placement.hpp"

namespace capstan::strategy {

/// Used by the thread that creates variables.
class ShardCreator {
 public:
  /// All arguments outlive this object.
  ShardCreator(Context& context, const Recovery& recovery, ShardPlacement& placement);

  struct Created {
    bool existed = false;  // a previous process of this coordinator had created some or all shards
    std::vector<std::pair<int, protocol::CreateShard>> requests;  // ps and request of each new shard
  };
  /// Creates the shards that do not exist yet, and sets the descriptor's number and shards. On failure, waits
  /// for the replies of all ps and drops the shards that were created, except on a ps that does not reply.
  /// Throws Error: unavailable, deadline_exceeded, and the error that a ps replied with.
  Created create(protocol::VariableDescriptor& descriptor, const detail::AnyInitialValue& initial);
  /// Removes the shards from every ps.
  void drop(const protocol::VariableDescriptor& descriptor);

 private:
  struct Call {
    std::optional<transport::RpcClient::Id> id;  // empty once the reply has arrived
    std::uint32_t revivals;                      // number of the peer's revivals when the call was sent
    std::uint32_t shard;
    int ps;
    std::vector<std::byte> request;
  };

  Call start(int ps, const protocol::CreateShard& request);
  protocol::ShardLocation finish(Call& call, const protocol::VariableDescriptor& descriptor);

  Context& context_;
  const Recovery& recovery_;
  ShardPlacement& placement_;
  std::uint32_t next_variable_;  // numbers of failed attempts, which may have left shards, are not reused
};

}  // namespace capstan::strategy
