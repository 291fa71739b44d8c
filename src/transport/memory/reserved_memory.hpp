// reserved_memory.hpp -- address ranges whose pages the kernel allocates on first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/fabric.hpp"

namespace capstan::transport {

/// Size of a huge page. Regions of a PersistentMemory that are reserved begin at a multiple of it, since the
/// kernel aligns huge pages to the offset in the file.
inline constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;

/// Reserves zeroed memory of this process. Throws Error(resource_exhausted).
std::shared_ptr<std::byte> reserve_memory(std::size_t bytes);

/// Frees the complete pages of memory from `reserve_memory`, or of a range of a PersistentMemory, and zeroes
/// the bytes beside them. Other processes that have mapped the range read zeros, too.
void release_memory(std::span<std::byte> memory) noexcept;

/// Returns a range of a PersistentMemory as a region that peers can map, but not access by RMA. Does not
/// register the memory with the network, because that would allocate its pages. `memory` must outlive the
/// region.
std::unique_ptr<Region> reserved_region(std::span<std::byte> memory, const FileLocation& location);

}  // namespace capstan::transport
