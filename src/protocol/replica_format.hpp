// replica_format.hpp -- the ordered stream of all state changes from a ps to its replica.
#pragma once

#include <cstdint>

#include "protocol/push_format.hpp"

namespace capstan::protocol {

/// Start of the header of a kReplicate message. If `type` is kPushEntry, the entry's PushHeader follows
/// (its `rank` is the pusher), and the payload is the rest of the entry. Otherwise the payload is the
/// request of that type from rank `from`.
struct ReplicaRecord {
  std::uint64_t number = 0;  // from 1, without gaps
  std::uint32_t type = 0;
  std::int32_t from = 0;
};

/// Header of kReplicated: all records up to `number` have been applied; `refused` of them were rejected
/// calls.
struct ReplicaProgress {
  std::uint64_t number = 0;
  std::uint64_t refused = 0;
  std::uint64_t busy = 0;  // 1: executing a call, which may take long
};

}  // namespace capstan::protocol
