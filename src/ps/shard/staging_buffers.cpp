// staging_buffers.cpp -- a room is found again by its size when its rank has gone.
#include "ps/shard/staging_buffers.hpp"

#include <algorithm>

namespace capstan::ps {
namespace {

constexpr int kNobody = -1;

}  // namespace

protocol::StagingBufferKey StagingBuffers::open(int rank, int gpu, std::uint64_t bytes) {
  auto free = std::find_if(rooms_.begin(), rooms_.end(), [&](const Owned& room) {
    return room.rank == kNobody && room.memory.size() == bytes;
  });
  if (free == rooms_.end()) free = rooms_.insert(free, {kNobody, gpu::Memory(gpu, bytes, gpu::Reach::host)});
  protocol::StagingBufferKey room{gpu::MappedMemory::key(gpu, free->memory),
                                  static_cast<std::uint32_t>(free - rooms_.begin())};
  free->rank = rank;
  return room;
}

void StagingBuffers::release(int rank) noexcept {
  for (Owned& room : rooms_) {
    if (room.rank == rank) room.rank = kNobody;
  }
}

std::byte* StagingBuffers::at(const protocol::BufferSlot& place, std::uint32_t rank,
                              std::uint64_t bytes) const noexcept {
  if (place.room >= rooms_.size()) return nullptr;
  const Owned& room = rooms_[place.room];
  if (room.rank != static_cast<int>(rank)) return nullptr;
  if (place.at > room.memory.size() || bytes > room.memory.size() - place.at) return nullptr;
  return room.memory.data() + place.at;
}

}  // namespace capstan::ps
