// replica_inbox.cpp -- validates, queues and applies replication records.
#include "ps/durability/replica_inbox.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "transport/bytes.hpp"
#include "transport/message_types.hpp"

namespace capstan::ps {

void ReplicaInbox::receive(const transport::Message& message) {
  Record record;
  const bool has_push = message.header.size() == sizeof record.head + sizeof record.push;
  transport::Message head = message;
  if (has_push) head.header = message.header.first(sizeof record.head);
  const auto read = transport::read_header<protocol::ReplicaRecord>(head);
  if (!read) return;
  record.head = *read;
  if (!transport::is_message_type(record.head.type)) {
    log::error("dropped a replication record of rank {}: unknown message type {}", message.from,
               record.head.type);
    return;
  }
  if (has_push != (record.head.type == transport::kPushEntry)) {
    transport::count_malformed(message, sizeof record.head + (has_push ? 0 : sizeof record.push));
    return;
  }
  if (has_push) std::memcpy(&record.push, message.header.data() + sizeof record.head, sizeof record.push);
  record.payload.assign(message.payload.begin(), message.payload.end());
  records_.push_back(std::move(record));
}

bool ReplicaInbox::apply_some() {
  if (records_.empty()) return false;
  for (const Record& record : std::exchange(records_, {})) {
    apply(record);
    progress_.number = record.head.number;
  }
  sink_.settle();
  report_progress_(progress_);
  return true;
}

void ReplicaInbox::apply(const Record& record) {
  // Acknowledging this record would acknowledge the dropped ones as well.
  if (record.head.number != progress_.number + 1) {
    throw Error(Code::data_loss, fmt::format("this replica cannot follow its ps: received replication record "
                                             "{}, expected {}; records in between were dropped",
                                             record.head.number, progress_.number + 1));
  }
  if (record.head.type != transport::kPushEntry) {
    report_progress_({progress_.number, progress_.refused, 1});
    try {
      replay_(static_cast<std::uint16_t>(record.head.type), record.head.from, record.payload);
    } catch (const Error&) {
      ++progress_.refused;  // the ps compares this with its own result
    }
    return;
  }
  const protocol::PushHeader& header = record.push;
  if (!protocol::is_complete(header, record.payload)) {
    throw Error(Code::data_loss,
                fmt::format("this replica cannot follow its ps: received {} bytes of a push of rank {} to "
                            "variable {} shard {}, expected {}",
                            record.payload.size() + sizeof header, header.rank, header.variable, header.shard,
                            header.bytes));
  }
  unfinished_[static_cast<int>(header.rank)].note(header, sink_);
  protocol::apply_entry(header, record.payload.data(), sink_);
}

void ReplicaInbox::close(int rank) {
  const auto found = unfinished_.find(rank);
  if (found == unfinished_.end()) return;
  found->second.abandon(sink_);
  unfinished_.erase(found);
}

void ReplicaInbox::end() {
  apply_some();
  for (auto& [rank, push] : unfinished_) push.abandon(sink_);
  unfinished_.clear();
}

}  // namespace capstan::ps
