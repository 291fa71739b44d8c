// replica_stream.cpp -- numbers, collects and sends replication records.
#include "ps/durability/replica_stream.hpp"

#include <utility>

#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::ps {

std::uint64_t ReplicaStream::push(const protocol::PushHeader& header, transport::Bytes rest) {
  return add(transport::kPushEntry, static_cast<int>(header.rank), transport::as_bytes(header), rest);
}

std::uint64_t ReplicaStream::call(std::uint16_t type, int from, transport::Bytes request) {
  return add(type, from, {}, request);
}

std::uint64_t ReplicaStream::add(std::uint16_t type, int from, transport::Bytes head, transport::Bytes rest) {
  const std::size_t bytes = sizeof(protocol::ReplicaRecord) + head.size() + rest.size();
  if (collected_.size() + bytes > kMessageBytes) flush();
  ++last_number_;
  if (dropped_) return last_number_;
  const protocol::ReplicaRecord record{last_number_, type, from, head.size() + rest.size()};
  const auto append = [this](transport::Bytes part) {
    collected_.insert(collected_.end(), part.begin(), part.end());
  };
  append(transport::as_bytes(record));
  append(head);
  if (bytes > kMessageBytes) {  // `rest` is not copied
    replica_.send(transport::kReplicate, collected_, rest);
    collected_.clear();
    last_sent_ = last_number_;
    return last_number_;
  }
  append(rest);
  collected_.resize(protocol::padded_record(collected_.size()));
  return last_number_;
}

void ReplicaStream::flush() {
  if (collected_.empty()) return;
  replica_.send(transport::kReplicate, {}, collected_);
  collected_.clear();
  last_sent_ = last_number_;
}

bool ReplicaStream::advance() {
  send_if_idle();
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
