// heap.hpp -- a ps's registered memory: few large regions, cut into pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "transport/fabric.hpp"

namespace capstan::ps {

/// A piece of a region. Zeroed.
struct Piece {
  std::uint64_t region = 0;
  std::uint64_t offset = 0;
  std::byte* data = nullptr;
};

/// Regions are registered as they are needed: small pieces share slabs, a piece larger than a slab gets a
/// region of its own. Pieces live as long as the heap, or until it goes back to where it was before them. One
/// thread.
class Heap {
 public:
  using Allocate = std::function<std::unique_ptr<transport::Region>(std::uint64_t bytes)>;

  Heap(transport::Fabric& fabric, std::uint64_t slab_bytes)
      : Heap([&fabric](std::uint64_t bytes) { return fabric.allocate(bytes); }, slab_bytes) {}
  Heap(Allocate allocate, std::uint64_t slab_bytes)
      : allocate_(std::move(allocate)), slab_bytes_(slab_bytes) {}

  /// Aligned to a page, so that no two pieces share a cache line or a memory policy. Throws
  /// Error(resource_exhausted).
  Piece allocate(std::uint64_t bytes);
  transport::RegionKey key(std::uint64_t region) const;
  /// A region from an earlier life; they are added in the order in which they came into being, before
  /// anything is allocated. No new piece comes from one.
  void add(std::unique_ptr<transport::Region> region);
  /// REQUIRES: the piece was allocated.
  Piece at(std::uint64_t region, std::uint64_t offset) const;
  struct Mark {
    std::uint64_t regions = 0;
    std::uint64_t open_slab = 0;
    std::uint64_t used = 0;
    bool operator==(const Mark&) const = default;
  };
  Mark mark() const noexcept { return {regions_.size(), open_slab_, used_}; }
  /// What was allocated since is given back. REQUIRES: nobody uses it, and nobody has a key of it.
  void back_to(const Mark& mark) noexcept;
  /// Registered so far.
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  Allocate allocate_;
  std::uint64_t slab_bytes_;
  std::vector<std::unique_ptr<transport::Region>> regions_;
  std::uint64_t open_slab_ = kNone;  // index of the region that small pieces come from
  std::uint64_t used_ = 0;           // of the open slab
  std::uint64_t bytes_ = 0;
};

}  // namespace capstan::ps
