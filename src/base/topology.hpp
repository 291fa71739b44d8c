// topology.hpp -- where memory lies: hwloc, for machines with several NUMA nodes.
#pragma once

#include <cstddef>
#include <span>

namespace capstan::topology {

/// NUMA nodes of this machine; 1 where hwloc cannot tell.
int numa_nodes();

/// Asks for pages of `memory`, when they are first touched, from the NUMA node of the core that the calling
/// thread runs on. Does nothing on a machine with one node. A refusal is logged, not an error: the memory
/// works from anywhere.
void bind_near_this_thread(std::span<std::byte> memory);

/// Asks for huge pages, which rows at random places profit from: a table of 4 KiB pages costs an address
/// translation a row. The system decides (/sys/kernel/mm/transparent_hugepage/shmem_enabled for memory that
/// is shared); nothing depends on it. Every process that maps shared memory asks for itself.
void advise_huge_pages(std::span<std::byte> memory) noexcept;

}  // namespace capstan::topology
