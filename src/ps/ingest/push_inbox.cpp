// push_inbox.cpp -- applies, defers and acknowledges entries that arrive as messages.
#include "ps/ingest/push_inbox.hpp"

#include <utility>

#include "base/log.hpp"
#include "transport/bytes.hpp"

namespace capstan::ps {

void PushInbox::receive(const transport::Message& message) {
  const auto received = transport::read_header<protocol::PushHeader>(message);
  if (!received) return;
  protocol::PushHeader header = *received;
  header.rank = static_cast<std::uint32_t>(message.from);
  Pusher& pusher = this->pusher(message.from);
  const std::uint64_t record = replica_ != nullptr ? replica_->push(header, message.payload) : 0;
  if (replica_ != nullptr || !pusher.waiting.empty() || !ready(pusher, header)) {
    pusher.waiting.push_back({header, {message.payload.begin(), message.payload.end()}, record});
    pending_ = true;
    return;
  }
  if (reinterpret_cast<std::uintptr_t>(message.payload.data()) % alignof(std::uint64_t) == 0) {
    apply(message.from, pusher, header, message.payload);
  } else {  // the transport's buffer may have any alignment
    const std::vector<std::byte> aligned(message.payload.begin(), message.payload.end());
    apply(message.from, pusher, header, aligned);
  }
}

PushInbox::Pusher& PushInbox::pusher(int rank) {
  const auto [found, added] = pushers_.try_emplace(rank);
  if (added && persistent_ != nullptr)
    found->second.applied = persistent_->applied(static_cast<std::uint64_t>(rank));
  return found->second;
}

void PushInbox::recover(const std::function<bool(int rank)>& has_ring) {
  for (const auto& [rank, push] : persistent_->unfinished_pushes()) {
    if (!has_ring(rank)) pusher(rank).unfinished = push;
  }
}

std::uint64_t PushInbox::settle(int rank) {
  Pusher& pusher = this->pusher(rank);
  for (const Entry& entry : std::exchange(pusher.waiting, {}))
    apply(rank, pusher, entry.header, entry.payload);
  sink_.settle();
  return pusher.applied;
}

void PushInbox::apply(int rank, Pusher& pusher, const protocol::PushHeader& header,
                      transport::Bytes payload) {
  if (!protocol::is_complete(header, payload)) {
    log::error("dropped a push of rank {} to variable {} shard {}: received {} bytes, expected {}", rank,
               header.variable, header.shard, payload.size() + sizeof header, header.bytes);
  } else {
    // note() comes second: if the entry begins the second run of an unfinished push, note() ends the push of
    // the first run, and the shard must not become consistent in between.
    protocol::apply_entry(header, payload.data(), sink_);
    pusher.unfinished.note(header, sink_);
  }
  pusher.applied += header.bytes;
  if (persistent_ != nullptr) persistent_->set_applied(static_cast<std::uint64_t>(rank), pusher.applied);
  if (header.acknowledge != 0) pusher.acknowledge = pending_ = true;
}

bool PushInbox::apply_some() {
  if (!pending_) return false;
  pending_ = false;
  bool any = false;
  for (auto& [rank, pusher] : pushers_) {
    while (!pusher.waiting.empty() && may_apply(pusher, pusher.waiting.front())) {
      const Entry entry = std::move(pusher.waiting.front());
      pusher.waiting.pop_front();
      apply(rank, pusher, entry.header, entry.payload);
      any = true;
    }
    if (!pusher.waiting.empty()) pending_ = true;
    if (!pusher.acknowledge) continue;
    pusher.acknowledge = false;
    sink_.settle();
    acknowledge_(rank, pusher.applied);
    any = true;
  }
  return any;
}

bool PushInbox::close(int rank) {
  const auto found = pushers_.find(rank);
  if (found == pushers_.end()) return false;
  for (const Entry& entry : found->second.waiting) apply(rank, found->second, entry.header, entry.payload);
  found->second.unfinished.abandon(sink_);
  pushers_.erase(found);
  return true;
}

void close_pusher(int rank, PushInbox& inbox, RingReader& rings) {
  inbox.close(rank);
  rings.close(rank);
}

}  // namespace capstan::ps
