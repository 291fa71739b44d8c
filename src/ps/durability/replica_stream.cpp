// replica_stream.cpp -- numbers and sends replication records.
#include "ps/durability/replica_stream.hpp"

#include <array>
#include <cstring>

#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::ps {

std::uint64_t ReplicaStream::push(const protocol::PushHeader& header, transport::Bytes rest) {
  ++last_number_;
  if (dropped_) return last_number_;
  const protocol::ReplicaRecord record{last_number_, transport::kPushEntry,
                                       static_cast<std::int32_t>(header.rank)};
  std::array<std::byte, sizeof record + sizeof header> bytes;
  std::memcpy(bytes.data(), &record, sizeof record);
  std::memcpy(bytes.data() + sizeof record, &header, sizeof header);
  replica_.send(transport::kReplicate, bytes, rest);
  return last_number_;
}

std::uint64_t ReplicaStream::call(std::uint16_t type, int from, transport::Bytes request) {
  ++last_number_;
  if (dropped_) return last_number_;
  const protocol::ReplicaRecord record{last_number_, type, from};
  replica_.send(transport::kReplicate, transport::as_bytes(record), request);
  return last_number_;
}

bool ReplicaStream::advance() {
  bool any = false;
  while (!deferred_.empty() && safe(deferred_.front().first)) {
    const auto then = std::move(deferred_.front().second);
    deferred_.pop_front();
    then();
    any = true;
  }
  return any;
}

}  // namespace capstan::ps
