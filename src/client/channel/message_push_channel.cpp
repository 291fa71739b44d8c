// message_push_channel.cpp -- sends entries, and waits until the transport no longer reads the gradient.
#include "client/channel/message_push_channel.hpp"

#include <algorithm>

#include "capstan/cancellation.hpp"
#include "transport/bytes.hpp"

namespace capstan::client {
namespace {

/// How long the transport may take to complete the sends of a connection that was closed by force.
constexpr std::chrono::seconds kForcedEndTimeout{10};

}  // namespace

MessagePushChannel::~MessagePushChannel() {
  if (*from_gradient_ != 0) (void)from_gradient_.release();
  for (auto& buffer : send_buffers_) {
    if (buffer->in_flight != 0) (void)buffer.release();
  }
}

void MessagePushChannel::push(const PushRows& push, PushNumbering& numbering, bool /*more*/) {
  session_.require_alive();
  try {
    send_entries(push, numbering);
    if (*from_gradient_ != 0) session_.wait_for("take a gradient", [this] { return *from_gradient_ == 0; });
  } catch (...) {
    reclaim_gradient();
    throw;
  }
}

/// After a failed push the caller reuses its memory, so the transport must stop reading it.
void MessagePushChannel::reclaim_gradient() {
  const auto done = [this] { return *from_gradient_ == 0; };
  transport::Fabric& fabric = session_.fabric();
  if (transport::progress_until(fabric, transport::deadline_in(session_.timeout()), done)) return;
  session_.peer().disconnect();
  transport::progress_until(fabric, transport::deadline_in(kForcedEndTimeout), done);
}

void MessagePushChannel::send_entries(const PushRows& push, PushNumbering& numbering) {
  const std::uint64_t part = rows_an_entry(push, ring_bytes_);
  for (std::uint64_t first = 0; first < push.count; first += part) {
    const std::uint64_t count = std::min(part, push.count - first);
    if (push.arrival != nullptr) (*push.arrival)((first + count) * push.row_bytes);
    send_entry(push, first, count, numbering);
  }
}

void MessagePushChannel::send_entry(const PushRows& push, std::uint64_t first, std::uint64_t count,
                                    PushNumbering& numbering) {
  protocol::PushHeader header = header_of(push, first, count, session_.rank());
  numbering.number(header, session_.ps());
  const std::uint64_t quarter = capacity() / 4;
  const bool fills_a_quarter = (tail_ + header.bytes) / quarter != tail_ / quarter;
  header.acknowledge = header.last_part != 0 || fills_a_quarter ? 1 : 0;
  wait_for_capacity(header.bytes);
  const std::uint64_t bytes = header.bytes - sizeof header;
  const bool complete_lines = count * push.row_bytes % protocol::kCacheLine == 0;
  if (push.kind() == protocol::PushKind::dense && complete_lines && !push.bfloat16) {
    session_.peer().send_in_place(transport::kPushEntry, transport::as_bytes(header),
                                  {push.gradient + first * push.row_bytes, bytes}, *from_gradient_);
  } else {
    SendBuffer& buffer = free_send_buffer();
    if (buffer.bytes.size() < bytes) buffer.bytes.resize(bytes);
    copy_body(push, first, count, buffer.bytes.data(), rounding_seed(push, header));
    session_.peer().send_in_place(transport::kPushEntry, transport::as_bytes(header),
                                  {buffer.bytes.data(), bytes}, buffer.in_flight);
  }
  tail_ += header.bytes;
}

/// The number of buffers is bounded by the number of entries that fit the capacity.
MessagePushChannel::SendBuffer& MessagePushChannel::free_send_buffer() {
  for (const auto& buffer : send_buffers_) {
    if (buffer->in_flight == 0) return *buffer;
  }
  return *send_buffers_.emplace_back(std::make_unique<SendBuffer>());
}

void MessagePushChannel::send(protocol::PushHeader header) {
  header.rank = static_cast<std::uint32_t>(session_.rank());
  header.bytes = sizeof header;
  header.acknowledge = 1;
  session_.require_alive();
  wait_for_capacity(header.bytes);
  session_.peer().send(transport::kPushEntry, transport::as_bytes(header));
  tail_ += header.bytes;
}

void MessagePushChannel::wait_for_capacity(std::uint64_t bytes) {
  const auto fits = [this, bytes] { return tail_ + bytes - session_.acknowledged() <= capacity(); };
  if (fits()) return;
  session_.wait_for("free its push ring", [this, &fits] {
    require_accepted();
    return fits();
  });
}

void MessagePushChannel::require_accepted() {
  if (session_.acknowledged() == protocol::kFenced) throw session_.fenced();
}

std::uint64_t MessagePushChannel::known_applied() const noexcept {
  if (session_.relocations() != relocations_) return session_.applied_at_loss(relocations_);
  return session_.acknowledged() == protocol::kFenced ? 0 : session_.acknowledged();
}

bool MessagePushChannel::applied(std::uint64_t position) {
  require_accepted();
  return known_applied() >= position;
}

void MessagePushChannel::wait(std::uint64_t position) {
  if (applied(position)) return;
  session_.wait_for("apply pushes", [this, position] {
    throw_if_cancelled();
    return applied(position);
  });
}

}  // namespace capstan::client
