// reserved_memory.hpp -- address ranges whose pages the kernel allocates on first use.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "transport/fabric.hpp"

namespace capstan::transport {

/// Reserves zeroed memory of this process. Throws Error(resource_exhausted).
std::shared_ptr<std::byte> reserve_memory(std::size_t bytes);

/// Frees the pages of memory of `reserve_memory`, or of a range of a PersistentMemory, and zeroes the rest.
/// Other processes that have mapped the range read zeros, too.
void release_memory(std::span<std::byte> memory) noexcept;

/// Returns a range of a PersistentMemory as a region that peers can map, but not access by RMA. Not
/// registered with the network, which would allocate its pages. `memory` must outlive the region.
std::unique_ptr<Region> reserved_region(std::span<std::byte> memory, const FileLocation& location);

}  // namespace capstan::transport
