// topology.hpp -- where memory lies and threads run: hwloc.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

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

/// Cores that this process may use, by hwloc's logical numbers: bound by a launcher, a batch system or a
/// cgroup. A core counts when one of its hardware threads does. Empty where hwloc cannot tell.
std::vector<int> allowed_cores();

/// Of hwloc's headers, and of the library that was found at run time: "2.9".
std::string hwloc_header_version();
std::string hwloc_version();

}  // namespace capstan::topology
