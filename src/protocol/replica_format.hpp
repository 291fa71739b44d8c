// replica_format.hpp -- the stream in which a ps tells its replica all that changes its state, in order.
#pragma once

#include <cstdint>

#include "protocol/push_format.hpp"

namespace capstan::protocol {

/// Starts the header of a kReplicate message. Where `type` is kPushEntry, the entry's PushHeader follows it,
/// whose `rank` is the pusher, and the payload is the rest of the entry; otherwise the payload is the request
/// of that type that rank `from` made.
struct ReplicaRecord {
  std::uint64_t number = 0;  // from 1, without gaps
  std::uint32_t type = 0;
  std::int32_t from = 0;
};

/// Header of kReplicated: all records up to `number` have been applied; of them, so many calls were refused.
struct ReplicaProgress {
  std::uint64_t number = 0;
  std::uint64_t refused = 0;
  std::uint64_t busy = 0;  // 1: at a call, which may take its time
};

}  // namespace capstan::protocol
