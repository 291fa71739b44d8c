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
  /// All outlive this object.
  ShardCreator(Context& context, const Recovery& recovery, ShardPlacement& placement);

  struct Created {
    bool existed = false;  // completely or partly, created by a previous process of this coordinator
    std::vector<std::pair<int, protocol::CreateShard>> requests;  // of the new shards, with their ps
  };
  /// Creates the shards that do not exist yet, and sets the descriptor's number and shards. Tries every ps
  /// before it throws, and drops what it created, unless a ps does not reply: its shards are lost with it.
  /// Throws Error: unavailable, deadline_exceeded, and the error that a ps replied with.
  Created create(protocol::VariableDescriptor& descriptor, const detail::AnyInitialValue& initial);
  /// Removes the shards from every ps.
  void drop(const protocol::VariableDescriptor& descriptor);

 private:
  struct Call {
    std::optional<transport::RpcClient::Id> id;  // none once its reply was awaited
    std::uint32_t revivals;                      // of the ps's peer, when the call was sent
    std::uint32_t shard;
    int ps;
    std::vector<std::byte> request;
  };

  Call start(int ps, const protocol::CreateShard& request);
  protocol::ShardLocation finish(Call& call, const protocol::VariableDescriptor& descriptor);

  Context& context_;
  const Recovery& recovery_;
  ShardPlacement& placement_;
  std::uint32_t next_variable_;  // a failed attempt uses up its number: it may have left shards behind
};

}  // namespace capstan::strategy
