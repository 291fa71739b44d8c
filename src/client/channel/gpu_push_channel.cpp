// gpu_push_channel.cpp -- calls the store in the same process, or writes to a staging buffer of another
// process.
#include "client/channel/gpu_push_channel.hpp"

#include <algorithm>
#include <cstring>

#include "base/log.hpp"
#include "capstan/serialize.hpp"

namespace capstan::client {

void InProcessGpuPushChannel::push(const PushRows& push, PushNumbering& numbering, GpuGradient& gradient) {
  const std::byte* const values = gradient.contiguous(push);
  const std::span<const std::uint32_t> rows = all_numbers(push, row_numbers_);
  gradient.ready().wait();  // before the store is locked
  protocol::PushHeader header = header_of(push, 0, push.count, rank_);
  numbering.number(header, ps_);
  sink_.device()->apply(header, rows, values, gradient.ready());
}

/// Requests the staging buffer once, even if the ps refuses it.
StagingBuffer& StagedGpuPushChannel::staging_buffer(int gpu) {
  if (StagingBuffer* const known = session_.gpu_memory().staging_buffer(gpu)) return *known;
  const transport::Peer& peer = session_.peer();
  protocol::StagingBufferKey key;
  try {
    key = from_bytes<protocol::StagingBufferKey>(session_.call(
        transport::kOpenStagingBuffer, to_bytes(StagingBuffer::kBytes), "open a staging buffer in its GPU"));
  } catch (const Error& error) {
    if (error.code() != Code::resource_exhausted) throw;
    log::warn("gradients for {} are copied through host memory: {}", peer.name(), error.what());
  }
  StagingBuffer& buffer = session_.gpu_memory().add_staging_buffer(gpu, key);
  if (buffer.is_usable()) log::debug("GPU {} copies gradients into the GPU of {}", gpu, peer.name());
  return buffer;
}

bool StagedGpuPushChannel::reserve(const PushRows& push, int gpu) {
  return push.row_bytes <= StagingBuffer::kPutBytes && staging_buffer(gpu).is_usable();
}

/// Throws if the buffer was released, which happens when the ps dies, even if its ring survives.
void StagedGpuPushChannel::require_memory(const StagingBuffer& buffer) const {
  if (!buffer.is_usable()) throw session_.lost_pushes();
}

void StagedGpuPushChannel::push(const PushRows& push, PushNumbering& numbering, GpuGradient& gradient) {
  channel_.prepare();
  StagingBuffer& buffer = staging_buffer(gradient.gpu());
  PushRing& ring = channel_.ring();
  const std::uint64_t part = rows_an_entry(push, ring.capacity());
  const std::uint64_t at_once =
      std::max<std::uint64_t>(1, StagingBuffer::kPutBytes / (part * push.row_bytes)) * part;
  for (std::uint64_t first = 0; first < push.count; first += at_once) {
    const std::uint64_t end = std::min(push.count, first + at_once);
    protocol::BufferSlot slot = take_slot(buffer, (end - first) * push.row_bytes);
    gradient.copy(push, first, end - first, buffer.at(slot));
    gradient.ready().wait();
    try {
      for (std::uint64_t row = first; row < end; row += part) {
        const std::uint64_t rows = std::min(part, end - row);
        write_entry(push, row, rows, numbering, buffer, slot);
        slot.at += rows * push.row_bytes;
      }
    } catch (...) {
      buffer.used_until(ring.tail());  // the entries written so far still use the slot
      throw;
    }
    buffer.used_until(ring.tail());
    channel_.publish();
  }
}

protocol::BufferSlot StagedGpuPushChannel::take_slot(StagingBuffer& buffer, std::uint64_t bytes) {
  require_memory(buffer);
  std::optional<protocol::BufferSlot> slot = buffer.take(bytes, channel_.ring().applied());
  if (slot) return *slot;
  session_.wait_for("free its staging buffer", [&] {
    require_memory(buffer);
    channel_.refresh_applied();
    slot = buffer.take(bytes, channel_.ring().applied());
    return slot.has_value();
  });
  return *slot;
}

void StagedGpuPushChannel::write_entry(const PushRows& push, std::uint64_t first, std::uint64_t count,
                                       PushNumbering& numbering, const StagingBuffer& buffer,
                                       const protocol::BufferSlot& slot) {
  protocol::PushHeader header = header_of(push, first, count, session_.rank());
  numbering.number(header, session_.ps());
  header.in_staging_buffer = 1;
  header.bytes = protocol::entry_bytes_in_staging_buffer(header.kind, count);
  channel_.reserve(header.bytes);
  require_memory(buffer);
  std::byte* entry = channel_.ring().mapped();
  std::memcpy(entry, &header, sizeof header);
  entry += sizeof header;
  if (push.kind() == protocol::PushKind::sparse)
    copy_numbers(push, first, count, reinterpret_cast<std::uint32_t*>(entry));
  std::memcpy(entry + protocol::number_bytes(header.kind, count), &slot, sizeof slot);
  channel_.ring().advance(header.bytes);
}

}  // namespace capstan::client
