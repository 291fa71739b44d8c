// failover.hpp -- messages by which a spare replaces a dead ps, and by which clients find its shards.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cluster/membership/member.hpp"
#include "protocol/ps_messages.hpp"

namespace capstan::protocol {

/// kFailover, coordinator to spare. For all other ranks the spare then is the ps, restarted as a new
/// process on another host with another heap.
struct FailoverRequest {
  /// Source of the shards' values.
  enum class Source : std::uint32_t {
    checkpoint = 0,  // the checkpoint in `directory`
    replica = 1,     // the spare was the replica and has the values
  };

  std::int32_t rank = 0;          // of the dead ps
  std::int32_t index = 0;         // of the dead ps
  std::uint32_t incarnation = 0;  // 1 for the first spare that replaces the ps, and so on
  Source source = Source::checkpoint;
  std::string directory;
  std::vector<CreateShard> shards;                                // in creation order
  std::vector<std::pair<std::uint32_t, std::uint64_t>> counters;  // (number, value at the checkpoint)
  std::vector<std::int32_t> dead;                                 // ranks of dead processes
  std::vector<cluster::Member> members;                           // workers that joined late
};

/// Header of kPsReturned; the payload is the Member. If two processes claim to be the same ps, the process
/// with the higher incarnation is that ps.
struct PsReturned {
  std::uint32_t incarnation = 0;  // 0: the initial ps, or restarted by its agent
  std::uint32_t reserved = 0;
};

/// Element of the reply to kCurrentLocations, one for each shard.
struct CurrentLocation {
  std::uint32_t variable = 0;
  std::uint32_t shard = 0;
  ShardLocation location;
};

}  // namespace capstan::protocol
