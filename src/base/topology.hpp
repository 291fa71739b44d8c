// topology.hpp -- NUMA placement of memory and the allowed cores, from hwloc.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace capstan::topology {

/// Number of NUMA nodes of this host; 1 if hwloc fails.
int numa_nodes();

/// Requests that the pages of `memory` are allocated, when they are first touched, on the NUMA node of the
/// calling thread's core. Does nothing on a host with one node. A failure is only logged: the memory works on
/// any node.
void bind_near_this_thread(std::span<std::byte> memory);

/// Requests huge pages, which speed up random access to rows: with 4 KiB pages, each row costs an address
/// translation. Best effort: the system decides (/sys/kernel/mm/transparent_hugepage/shmem_enabled for shared
/// memory). Every process that maps shared memory must call this itself.
void advise_huge_pages(std::span<std::byte> memory) noexcept;

/// Logical hwloc indices of the cores to which the launcher, the batch system or the cgroup binds this
/// process. A core counts if at least one of its hardware threads is allowed. Empty if hwloc fails.
std::vector<int> allowed_cores();

/// Versions of hwloc's headers and of the library loaded at run time ("2.9").
std::string hwloc_header_version();
std::string hwloc_version();

}  // namespace capstan::topology
