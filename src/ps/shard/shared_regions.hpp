// shared_regions.hpp -- regions of a ps that keeps nothing beyond its process.
#pragma once

#include <cstdint>
#include <memory>

#include "transport/fabric.hpp"
#include "transport/memory/persistent_memory.hpp"

namespace capstan::ps {

/// Memory that UCX allocates can be mapped by a process of this host that connected to this one, and not
/// always by one that this one connected to. So regions lie in a file, as those of a ps that may come back,
/// and go with the process.
class SharedRegions {
 public:
  explicit SharedRegions(transport::Fabric& fabric);

  /// Zeroed. From the fabric itself where the system has no such files. Throws Error(resource_exhausted).
  std::unique_ptr<transport::Region> allocate(std::uint64_t bytes);

 private:
  transport::Fabric& fabric_;
  std::shared_ptr<transport::PersistentMemory> memory_;
  std::uint64_t next_ = transport::PersistentMemory::kFirst;
};

}  // namespace capstan::ps
