// replica_stream.cpp -- numbering and sending.
#include "ps/durability/replica_stream.hpp"

#include <array>
#include <cstring>

#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::ps {

std::uint64_t ReplicaStream::push(const protocol::PushHeader& header, transport::Bytes rest) {
  ++told_;
  if (ended_) return told_;
  const protocol::ReplicaRecord record{told_, transport::kPushEntry, static_cast<std::int32_t>(header.rank)};
  std::array<std::byte, sizeof record + sizeof header> bytes;
  std::memcpy(bytes.data(), &record, sizeof record);
  std::memcpy(bytes.data() + sizeof record, &header, sizeof header);
  replica_.send(transport::kReplicate, bytes, rest);
  return told_;
}

std::uint64_t ReplicaStream::call(std::uint16_t type, int from, transport::Bytes request) {
  ++told_;
  if (ended_) return told_;
  const protocol::ReplicaRecord record{told_, type, from};
  replica_.send(transport::kReplicate, transport::as_bytes(record), request);
  return told_;
}

bool ReplicaStream::advance() {
  bool any = false;
  while (!later_.empty() && safe(later_.front().first)) {
    const auto then = std::move(later_.front().second);
    later_.pop_front();
    then();
    any = true;
  }
  return any;
}

}  // namespace capstan::ps
