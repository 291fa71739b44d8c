// heap.hpp -- registered memory of a ps: a few large regions, divided into pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "transport/fabric.hpp"

namespace capstan::ps {

/// A zeroed piece of a region.
struct Piece {
  std::uint64_t region = 0;
  std::uint64_t offset = 0;
  std::byte* data = nullptr;
};

/// Registers regions on demand: small pieces share slabs, and a piece larger than half a slab has its own
/// region. Pieces are valid until the heap is destroyed or rolled back. Not thread-safe.
class Heap {
 public:
  using Allocate = std::function<std::unique_ptr<transport::Region>(std::uint64_t bytes)>;

  Heap(transport::Fabric& fabric, std::uint64_t slab_bytes)
      : Heap([&fabric](std::uint64_t bytes) { return fabric.allocate(bytes); },
             [&fabric](std::uint64_t bytes) { return fabric.reserve(bytes); }, slab_bytes) {}
  /// `reserve` returns regions whose pages are allocated on first use.
  Heap(Allocate allocate, Allocate reserve, std::uint64_t slab_bytes)
      : allocate_(std::move(allocate)), reserve_(std::move(reserve)), slab_bytes_(slab_bytes) {}

  /// Allocates a zeroed piece. Pieces are aligned to pages, so that no two share a cache line or a memory
  /// policy. Throws Error(resource_exhausted).
  Piece allocate(std::uint64_t bytes);
  /// Reserves a zeroed piece, in a region of its own that clients can map, but not access by RMA. Throws
  /// Error(resource_exhausted).
  Piece reserve(std::uint64_t bytes);
  /// Returns the key by which clients access a region. Throws Error(not_found).
  transport::RegionKey key(std::uint64_t region) const;
  /// Adds a region of the previous process; no new piece is allocated from it. REQUIRES: regions are added in
  /// the order of their allocation, before any call of `allocate`.
  void add(std::unique_ptr<transport::Region> region) { add(std::move(region), false); }
  /// As above, for a region of `reserve`.
  void add_reserved(std::unique_ptr<transport::Region> region) { add(std::move(region), true); }
  /// Returns the piece at a location. REQUIRES: it was allocated.
  Piece at(std::uint64_t region, std::uint64_t offset) const;
  /// A position in the heap.
  struct Mark {
    std::uint64_t regions = 0;
    std::uint64_t open_slab = 0;
    std::uint64_t used = 0;
    bool operator==(const Mark&) const = default;
  };
  Mark mark() const noexcept { return {regions_.size(), open_slab_, used_}; }
  /// Frees all pieces and regions allocated after the mark. REQUIRES: nothing uses them, and no client has a
  /// key to those regions.
  void roll_back(const Mark& mark) noexcept;
  /// Returns the number of bytes registered, without reserved ones.
  std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  void add(std::unique_ptr<transport::Region> region, bool reserved);

  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  Allocate allocate_;
  Allocate reserve_;
  std::uint64_t slab_bytes_;
  std::vector<std::unique_ptr<transport::Region>> regions_;
  std::vector<bool> reserved_;       // by region
  std::uint64_t open_slab_ = kNone;  // index of the region for small pieces
  std::uint64_t used_ = 0;           // bytes of the open slab
  std::uint64_t bytes_ = 0;
};

}  // namespace capstan::ps
