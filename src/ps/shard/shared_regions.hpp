// shared_regions.hpp -- regions of a ps whose state ends with its process.
#pragma once

#include <cstdint>
#include <memory>

#include "transport/fabric.hpp"
#include "transport/memory/persistent_memory.hpp"

namespace capstan::ps {

/// A process of this host that connected to this one can map memory that UCX allocated; one that this process
/// connected to cannot always. So regions are allocated in an unnamed file, like those of a persistent ps,
/// and freed with the process.
class SharedRegions {
 public:
  explicit SharedRegions(transport::Fabric& fabric);

  /// Allocates a zeroed region, from the fabric if the system has no such files. Throws
  /// Error(resource_exhausted).
  std::unique_ptr<transport::Region> allocate(std::uint64_t bytes);

 private:
  transport::Fabric& fabric_;
  std::shared_ptr<transport::PersistentMemory> memory_;
  std::uint64_t next_ = transport::PersistentMemory::kFirst;
};

}  // namespace capstan::ps
