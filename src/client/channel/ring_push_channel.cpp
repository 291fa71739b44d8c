// ring_push_channel.cpp -- writes entries, publishes their end, and waits for capacity.
#include "client/channel/ring_push_channel.hpp"

#include <algorithm>
#include <cstring>

#include "capstan/cancellation.hpp"
#include "capstan/serialize.hpp"
#include "transport/bytes.hpp"

namespace capstan::client {

void RingPushChannel::prepare() {
  session_.require_alive();
  if (ring_.is_open()) return;
  const auto location = from_bytes<protocol::RingLocation>(
      session_.call(transport::kOpenRing, transport::as_bytes(ring_.capacity()), "open a push ring"));
  ring_.open(location, session_.window(location.region));
}

void RingPushChannel::push(const PushRows& of_caller, PushNumbering& numbering, bool more) {
  prepare();
  PushRows push = of_caller;
  if (ring_.mapped() != nullptr) push.bfloat16 = false;  // conversion takes longer than a copy in the caches
  const std::uint64_t part = rows_an_entry(push, ring_.capacity());
  for (std::uint64_t first = 0; first < push.count; first += part) {
    const std::uint64_t count = std::min(part, push.count - first);
    if (push.arrival != nullptr) (*push.arrival)((first + count) * push.row_bytes);
    write_entry(push, first, count, numbering);
    if (!more) publish();
  }
}

void RingPushChannel::write_entry(const PushRows& push, std::uint64_t first, std::uint64_t count,
                                  PushNumbering& numbering) {
  protocol::PushHeader header = header_of(push, first, count, session_.rank());
  numbering.number(header, session_.ps());
  reserve(header.bytes);
  if (push.on_gpu) {
    ring_.put(0, transport::as_bytes(header));
    ring_.put(sizeof header, {push.gradient + first * push.row_bytes, count * push.row_bytes});
  } else if (std::byte* const entry = ring_.mapped(); entry != nullptr) {
    std::memcpy(entry, &header, sizeof header);
    const auto write = [&](bool streaming) {
      if (streaming) return stream_body(push, first, count, entry + sizeof header);
      copy_body(push, first, count, entry + sizeof header, 0);  // no rounding: push() has cleared bfloat16
    };
    protocol::has_values(push.op) ? stores_.write(header.bytes, write) : write(false);
  } else {
    entry_.resize(header.bytes);
    std::memcpy(entry_.data(), &header, sizeof header);
    copy_body(push, first, count, entry_.data() + sizeof header, rounding_seed(push, header));
    ring_.put(0, entry_);
  }
  ring_.advance(header.bytes);
}

void RingPushChannel::send(protocol::PushHeader header) {
  header.rank = static_cast<std::uint32_t>(session_.rank());
  header.bytes = sizeof header;
  prepare();
  reserve(header.bytes);
  ring_.put(0, transport::as_bytes(header));
  ring_.advance(header.bytes);
  publish();
}

void RingPushChannel::reserve(std::uint64_t bytes) {
  if (const std::uint64_t to_end = ring_.to_end(); to_end < bytes) {
    wait_for_capacity(to_end);
    ring_.pad();
  }
  wait_for_capacity(bytes);
}

void RingPushChannel::wait_for_capacity(std::uint64_t bytes) {
  if (ring_.fits(bytes)) return;
  publish();
  session_.wait_for("free its push ring", [this, bytes] {
    refresh_applied();
    return ring_.fits(bytes);
  });
}

void RingPushChannel::publish() {
  if (ring_.published()) return;
  PsBoard& board = session_.board();
  board.publish(ring_.tail());
  ring_.note_published();
  if (!board.mapped()) {
    session_.peer().send(transport::kDoorbell, {});  // reading the flag would cost a round trip
  } else if (board.exchange_asleep()) {
    signal_doorbell();
  }
}

void RingPushChannel::signal_doorbell() {
  transport::Fabric& fabric = session_.fabric();
  if (fabric.signal(session_.process().doorbell)) return;
  session_.peer().send(transport::kDoorbell, {});
  fabric.progress();  // sends the message now
}

void RingPushChannel::refresh_applied() {
  ring_.note_applied(session_.board().applied());
  if (ring_.applied() == protocol::kFenced) throw session_.fenced();
}

std::uint64_t RingPushChannel::known_applied() const noexcept {
  const std::uint64_t read = ring_.applied() == protocol::kFenced ? 0 : ring_.applied();
  const bool lost = session_.relocations() != relocations_;
  return lost ? std::max(read, session_.applied_at_loss(relocations_)) : read;
}

bool RingPushChannel::applied(std::uint64_t position) {
  publish();
  if (known_applied() < position) refresh_applied();
  return known_applied() >= position;
}

void RingPushChannel::wait(std::uint64_t position) {
  publish();
  if (known_applied() >= position) return;
  session_.wait_for("apply pushes", [this, position] {
    throw_if_cancelled();
    refresh_applied();
    return known_applied() >= position;
  });
}

}  // namespace capstan::client
