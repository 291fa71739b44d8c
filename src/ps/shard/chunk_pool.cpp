// chunk_pool.cpp -- caches chunks by size and checks the free memory of the host.
#include "ps/shard/chunk_pool.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/first_touch.hpp"
#include "base/topology.hpp"

namespace capstan::ps {
namespace {

/// Bytes allocated between two checks of free memory. A check takes as long as faulting in one chunk.
constexpr std::uint64_t kCheckInterval = std::uint64_t{64} << 20;

}  // namespace

ChunkPool::Chunk ChunkPool::take(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (const auto found = free_.find(bytes); found != free_.end() && !found->second.empty()) {
    Chunk chunk = std::move(found->second.back());
    found->second.pop_back();
    free_bytes_ -= bytes;
    return chunk;
  }
  if (allowed_ < bytes)
    allowed_ = std::min(check_memory_left(bytes), std::max<std::uint64_t>(kCheckInterval, bytes));
  Chunk chunk(static_cast<std::byte*>(std::aligned_alloc(kBytes, bytes)));
  if (chunk == nullptr) throw std::bad_alloc();
  allowed_ -= bytes;
  topology::advise_huge_pages({chunk.get(), bytes});
  return chunk;
}

void ChunkPool::give_back(std::vector<Chunk> chunks, std::size_t bytes) noexcept {
  if (chunks.empty()) return;
  try {
    const std::uint64_t most = memory_left() / 4;
    const std::lock_guard lock(mutex_);
    std::vector<Chunk>& free = free_[bytes];
    for (Chunk& chunk : chunks) {
      if (free_bytes_ + bytes > most) return;
      free.push_back(std::move(chunk));
      free_bytes_ += bytes;
    }
  } catch (const std::bad_alloc&) {
    // No memory to record free chunks: the rest is freed.
  }
}

}  // namespace capstan::ps
