// heap.hpp -- a ps's registered memory: few large regions, cut into pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "transport/fabric.hpp"

namespace capstan::store {

/// A piece of a region. Zeroed.
struct Piece {
  std::uint64_t region = 0;
  std::uint64_t offset = 0;
  std::byte* data = nullptr;
};

/// Regions are registered as they are needed: small pieces share slabs, a piece larger than a slab gets a
/// region of its own. Pieces live as long as the heap. One thread.
class Heap {
 public:
  Heap(transport::Fabric& fabric, std::uint64_t slab_bytes) : fabric_(fabric), slab_bytes_(slab_bytes) {}

  /// Aligned to a page, so that no two pieces share a cache line or a memory policy. Throws
  /// Error(resource_exhausted).
  Piece allocate(std::uint64_t bytes);
  transport::RegionKey key(std::uint64_t region) const;
  /// Registered so far.
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  transport::Fabric& fabric_;
  std::uint64_t slab_bytes_;
  std::vector<std::unique_ptr<transport::Region>> regions_;
  std::uint64_t open_slab_ = 0;  // index of the region that small pieces come from
  std::uint64_t used_ = 0;       // of the open slab
  std::uint64_t bytes_ = 0;
};

}  // namespace capstan::store
