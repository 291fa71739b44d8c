// failover.hpp -- what a spare must know to be a ps that is lost, and where its shards lie then.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cluster/membership/member.hpp"
#include "protocol/ps_messages.hpp"

namespace capstan::protocol {

/// kFailover, coordinator to spare. To everybody else the spare is from then on the ps, come back as a new
/// process on another host, with another heap.
struct FailoverRequest {
  /// Where the shards' values come from.
  enum class Source : std::uint32_t {
    checkpoint = 0,  // `folder`
    replica = 1,     // what the spare has followed
  };

  std::int32_t rank = 0;  // of the ps
  std::int32_t index = 0;
  std::uint32_t incarnation = 0;  // 1 for the first spare in its place, and so on
  Source source = Source::checkpoint;
  std::string folder;
  std::vector<CreateShard> shards;                                // in the order of their creation
  std::vector<std::pair<std::uint32_t, std::uint64_t>> counters;  // as they were at the checkpoint
  std::vector<std::int32_t> dead;                                 // ranks that count as dead
  std::vector<cluster::Member> members;                           // workers that came after the start
};

/// kPsReturned, whose payload is the Member. Of two processes that say they are one ps, the one of the later
/// life is.
struct PsReturned {
  std::uint32_t incarnation = 0;  // 0: the ps of the start, or started again by its agent
  std::uint32_t reserved = 0;
};

/// kCurrentLocations -> one of these for each shard.
struct CurrentLocation {
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  ShardLocation location;
};

}  // namespace capstan::protocol
