// staging_buffers.cpp -- reuses released buffers of the same size.
#include "ps/shard/staging_buffers.hpp"

#include <algorithm>

namespace capstan::ps {
namespace {

constexpr int kReleased = -1;

}  // namespace

protocol::StagingBufferKey StagingBuffers::open(int rank, int gpu, std::uint64_t bytes) {
  auto free = std::find_if(buffers_.begin(), buffers_.end(), [&](const Buffer& buffer) {
    return buffer.rank == kReleased && buffer.memory.size() == bytes;
  });
  if (free == buffers_.end())
    free = buffers_.insert(free, {kReleased, gpu::Memory(gpu, bytes, gpu::Reach::host)});
  protocol::StagingBufferKey key{gpu::MappedMemory::key(gpu, free->memory),
                                 static_cast<std::uint32_t>(free - buffers_.begin())};
  free->rank = rank;
  return key;
}

void StagingBuffers::release(int rank) noexcept {
  for (Buffer& buffer : buffers_) {
    if (buffer.rank == rank) buffer.rank = kReleased;
  }
}

std::byte* StagingBuffers::at(const protocol::BufferSlot& slot, std::uint32_t rank,
                              std::uint64_t bytes) const noexcept {
  if (slot.number >= buffers_.size()) return nullptr;
  const Buffer& buffer = buffers_[slot.number];
  if (buffer.rank == kReleased || buffer.rank != static_cast<int>(rank)) return nullptr;
  if (slot.at > buffer.memory.size() || bytes > buffer.memory.size() - slot.at) return nullptr;
  return buffer.memory.data() + slot.at;
}

}  // namespace capstan::ps
