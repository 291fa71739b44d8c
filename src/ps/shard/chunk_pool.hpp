// chunk_pool.hpp -- the memory that a save takes for rows that change meanwhile, used again by the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace capstan::ps {

/// Pages that nobody has touched yet are slow to come, and a save wants many at once: so those of an earlier
/// save are kept, up to a quarter of what this host has left. Not with MADV_FREE: such pages count as memory
/// that is left even when they are written to again. Any thread.
class ChunkPool {
 public:
  /// One huge page.
  static constexpr std::size_t kBytes = std::size_t{2} << 20;

  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  using Chunk = std::unique_ptr<std::byte[], Free>;

  /// REQUIRES: a multiple of kBytes. Throws Error(resource_exhausted) when this host has not so much left.
  Chunk take(std::size_t bytes);
  /// Chunks of `bytes` each.
  void give_back(std::vector<Chunk> chunks, std::size_t bytes) noexcept;

 private:
  std::mutex mutex_;
  std::map<std::size_t, std::vector<Chunk>> free_;  // by size
  std::uint64_t kept_ = 0;                          // bytes of those
  std::uint64_t allowed_ = 0;                       // of new memory, before somebody has to look again
};

}  // namespace capstan::ps
