// chunk_pool.hpp -- memory for rows that a save preserves, reused by the next save.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace capstan::ps {

/// The first use of a page is slow and a save needs many at once, so pages are cached for the next save, up
/// to a quarter of the free memory of this host. MADV_FREE would not do: such pages count as free even after
/// they are written again. Thread-safe.
class ChunkPool {
 public:
  /// Size of a huge page.
  static constexpr std::size_t kBytes = std::size_t{2} << 20;

  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  using Chunk = std::unique_ptr<std::byte[], Free>;

  /// Returns an uninitialized chunk. Throws Error(resource_exhausted) if this host has too little free
  /// memory, or std::bad_alloc. REQUIRES: `bytes` is a multiple of kBytes.
  Chunk take(std::size_t bytes);
  /// Caches chunks of `bytes` each, or frees them if the cache is full.
  void give_back(std::vector<Chunk> chunks, std::size_t bytes) noexcept;

 private:
  std::mutex mutex_;
  std::map<std::size_t, std::vector<Chunk>> free_;  // by size
  std::uint64_t free_bytes_ = 0;
  std::uint64_t allowed_ = 0;  // bytes that may be allocated before the next check of free memory
};

}  // namespace capstan::ps
