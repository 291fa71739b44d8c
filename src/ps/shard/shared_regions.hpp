// shared_regions.hpp -- regions of a ps without persistent memory, which other processes can map.
#pragma once

#include <cstdint>
#include <memory>

#include "transport/fabric.hpp"
#include "transport/memory/persistent_memory.hpp"

namespace capstan::ps {

/// Processes of this host that connected to this process can map memory that UCX allocates; processes to
/// which this process connected cannot always. So regions are allocated in an unnamed file, like those of a
/// persistent ps, and freed with the process. Not thread-safe.
class SharedRegions {
 public:
  explicit SharedRegions(transport::Fabric& fabric);

  /// Allocates a zeroed region, from the fabric if unnamed files are not supported. Throws
  /// Error(resource_exhausted).
  std::unique_ptr<transport::Region> allocate(std::uint64_t bytes);
  /// Reserves a region whose pages are allocated on first use. Throws Error: resource_exhausted,
  /// unimplemented.
  std::unique_ptr<transport::Region> reserve(std::uint64_t bytes);

 private:
  transport::Fabric& fabric_;
  std::shared_ptr<transport::PersistentMemory> memory_;
  std::uint64_t next_ = transport::PersistentMemory::kFirstOffset;
};

}  // namespace capstan::ps
