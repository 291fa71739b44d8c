// replica_inbox.cpp -- queues, validates and applies replication records.
#include "ps/durability/replica_inbox.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "capstan/error.hpp"
#include "transport/message_types.hpp"

namespace capstan::ps {

void ReplicaInbox::receive(const transport::Message& message) {
  Records& records = received_.emplace_back();
  records.reserve(message.header.size() + message.payload.size());
  records.insert(records.end(), message.header.begin(), message.header.end());
  records.insert(records.end(), message.payload.begin(), message.payload.end());
}

bool ReplicaInbox::apply_some() {
  if (received_.empty()) return false;
  for (const Records& records : std::exchange(received_, {})) apply_all(records);
  sink_.settle();
  report_progress_(progress_);
  return true;
}

void ReplicaInbox::apply_all(const Records& records) {
  const transport::Bytes bytes(records);
  for (std::uint64_t at = 0; at < bytes.size();) {
    protocol::ReplicaRecord record;
    const std::uint64_t body = at + sizeof record;
    if (body <= bytes.size()) std::memcpy(&record, bytes.data() + at, sizeof record);
    if (body > bytes.size() || record.bytes > bytes.size() - body) {
      throw Error(Code::data_loss,
                  fmt::format("this replica cannot follow its ps: a message of {} bytes ends within the "
                              "replication record after record {}",
                              bytes.size(), progress_.number));
    }
    apply(record, bytes.subspan(body, record.bytes));
    progress_.number = record.number;
    at = protocol::padded_record(body + record.bytes);
  }
}

void ReplicaInbox::apply(const protocol::ReplicaRecord& record, transport::Bytes body) {
  // Acknowledging this record would acknowledge the missing ones as well.
  if (record.number != progress_.number + 1) {
    throw Error(Code::data_loss, fmt::format("this replica cannot follow its ps: received replication record "
                                             "{}, expected {}; records in between were dropped",
                                             record.number, progress_.number + 1));
  }
  if (!transport::is_message_type(record.type)) {
    throw Error(Code::data_loss, fmt::format("this replica cannot follow its ps: replication record {} has "
                                             "the unknown message type {}",
                                             record.number, record.type));
  }
  if (record.type == transport::kPushEntry) return apply_push(body);
  sink_.settle();  // the report acknowledges earlier pushes
  report_progress_({progress_.number, progress_.refused, 1});
  try {
    replay_(static_cast<std::uint16_t>(record.type), record.from, body);
  } catch (const Error&) {
    ++progress_.refused;  // the ps compares this with its own result
  }
}

void ReplicaInbox::apply_push(transport::Bytes entry) {
  protocol::PushHeader header;
  const bool has_header = entry.size() >= sizeof header;
  if (has_header) std::memcpy(&header, entry.data(), sizeof header);
  if (!has_header || !protocol::is_complete(header, entry.subspan(sizeof header))) {
    throw Error(Code::data_loss,
                fmt::format("this replica cannot follow its ps: received {} bytes of a push of rank {} to "
                            "variable {} shard {}, expected {}",
                            entry.size(), header.rank, header.variable, header.shard,
                            has_header ? header.bytes : sizeof header));
  }
  unfinished_[static_cast<int>(header.rank)].note(header, sink_);
  protocol::apply_entry(header, entry.data() + sizeof header, sink_);
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
