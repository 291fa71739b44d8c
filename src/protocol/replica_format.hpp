// replica_format.hpp -- the ordered stream of all state changes from a ps to its replica.
#pragma once

#include <cstdint>

#include "protocol/push_format.hpp"

namespace capstan::protocol {

/// Start of the header of a kReplicate message. If `type` is kPushEntry, the PushHeader of the entry follows,
/// and the payload is the rest of the entry. Otherwise the payload is a request of that type.
struct ReplicaRecord {
  std::uint64_t number = 0;  // from 1, without gaps
  std::uint32_t type = 0;
  std::int32_t from = 0;  // sender of the request, or pusher of the entry
};

/// Header of kReplicated: the replica has processed all records up to `number`.
struct ReplicaProgress {
  std::uint64_t number = 0;
  std::uint64_t refused = 0;  // number of processed requests that were refused
  std::uint64_t busy = 0;     // 1: executing a request, which may take long
};

}  // namespace capstan::protocol
