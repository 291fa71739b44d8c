// ps_link_on_gpu.cpp -- pushes of gradients that lie in a GPU, to shards that do.
#include <cstring>

#include "base/log.hpp"
#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "client/channel/ps_link.hpp"
#include "gpu/gpu.hpp"
#include "protocol/device_push_sink.hpp"

namespace capstan::client {

std::vector<std::byte> PsLink::gpu_key(std::uint32_t variable, std::uint32_t shard) {
  return call(transport::kGpuKey, to_bytes(std::pair(variable, shard)), "say how to read its GPU");
}

bool PsLink::reserve_from_gpu(const PushRows& push, int gpu) {
  protocol::DevicePushSink* device = sink_ != nullptr ? sink_->device() : nullptr;
  return device != nullptr && device->reserve(push.variable, push.shard, gpu, push.count);
}

void PsLink::push_from_gpu(const PushRows& push, const gpu::Event& made) {
  std::span<const std::uint32_t> rows = push.rows;
  if (!push.ids.empty()) {
    numbers_.resize(push.count);
    copy_numbers(push, 0, push.count, numbers_.data());
    rows = numbers_;
  }
  made.wait();  // here, and not while the store stands still
  sink_->device()->apply(next_header(push, 0, push.count), rows, push.gradient, made);
}

bool PsLink::has_room_on_gpu(const PushRows& push, int gpu) {
  if (path_ != Path::mapped || push.row_bytes > StagingBuffer::kPutBytes) return false;
  auto known = gpu_rooms_.find(gpu);
  if (known == gpu_rooms_.end()) {
    protocol::StagingBufferKey answer;
    try {
      answer = from_bytes<protocol::StagingBufferKey>(
          call(transport::kOpenStagingBuffer, to_bytes(StagingBuffer::kBytes), "give room in its GPU"));
    } catch (const Error& error) {
      if (error.code() != Code::resource_exhausted) throw;
      log::warn("gradients for {} go by the host: {}", peer_.name(), error.what());
    }
    known = gpu_rooms_.emplace(gpu, StagingBuffer(gpu, answer)).first;
    if (known->second.is_there()) log::debug("GPU {} puts gradients into the GPU of {}", gpu, peer_.name());
  }
  return known->second.is_there();
}

void PsLink::push_by_room(const PushRows& push, int gpu, const Put& put) {
  require_alive();
  StagingBuffer& room = gpu_rooms_.at(gpu);
  if (ring_window_ == nullptr) open_ring();
  const std::uint64_t part = rows_an_entry(push, room_);
  const std::uint64_t at_once =
      std::max<std::uint64_t>(1, StagingBuffer::kPutBytes / (part * push.row_bytes)) * part;
  for (std::uint64_t first = 0; first < push.count; first += at_once) {
    const std::uint64_t end = std::min(push.count, first + at_once);
    protocol::BufferSlot place = take_room(room, (end - first) * push.row_bytes);
    put(first, end - first, room.at(place));
    try {
      for (std::uint64_t row = first; row < end; row += part) {
        const std::uint64_t rows = std::min(part, end - row);
        write_entry_in_room(push, row, rows, place);
        place.at += rows * push.row_bytes;
      }
    } catch (...) {
      room.used_until(tail_);  // by those that were written
      throw;
    }
    room.used_until(tail_);
    publish();
  }
}

protocol::BufferSlot PsLink::take_room(StagingBuffer& room, std::uint64_t bytes) {
  std::optional<protocol::BufferSlot> place = room.take(bytes, applied_);
  if (place) return *place;
  wait_for_ps("make room in its GPU", [&] {
    read_applied();
    place = room.take(bytes, applied_);
    return place.has_value();
  });
  return *place;
}

void PsLink::write_entry_in_room(const PushRows& push, std::uint64_t first, std::uint64_t count,
                                 const protocol::BufferSlot& place) {
  protocol::PushHeader header = next_header(push, first, count);
  header.in_staging_buffer = 1;
  header.bytes = protocol::entry_bytes_in_room(header.kind, count);
  reserve(header.bytes);
  std::byte* entry = ring_window_->mapped() + ring_.offset + tail_ % ring_.bytes;
  std::memcpy(entry, &header, sizeof header);
  entry += sizeof header;
  if (push.sparse()) copy_numbers(push, first, count, reinterpret_cast<std::uint32_t*>(entry));
  std::memcpy(entry + protocol::number_bytes(header.kind, count), &place, sizeof place);
  tail_ += header.bytes;
}

}  // namespace capstan::client
