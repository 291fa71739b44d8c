// replica_format.hpp -- the ordered stream of all state changes from a ps to its replica.
#pragma once

#include <cstdint>

#include "protocol/push_format.hpp"

namespace capstan::protocol {

/// Precedes each record of a kReplicate message. The header and the payload of the message are one sequence
/// of records, split anywhere. The body follows: a PushHeader and the rest of the entry if `type` is
/// kPushEntry, otherwise a request of that type. Each record begins at a multiple of 8 bytes.
struct ReplicaRecord {
  std::uint64_t number = 0;  // from 1, without gaps
  std::uint32_t type = 0;
  std::int32_t from = 0;    // sender of the request, or pusher of the entry
  std::uint64_t bytes = 0;  // of the body, without the padding to the next record
};

/// Returns the position of the record after one that ends at `end`.
constexpr std::uint64_t padded_record(std::uint64_t end) noexcept { return (end + 7) / 8 * 8; }

/// Header of kReplicated: the replica has processed all records up to `number`.
struct ReplicaProgress {
  std::uint64_t number = 0;
  std::uint64_t refused = 0;  // number of processed requests that were refused
  std::uint64_t busy = 0;     // 1: executing a request, which may take long
};

}  // namespace capstan::protocol
