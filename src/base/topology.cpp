// topology.cpp -- hwloc's view of this machine, loaded once.
#include "base/topology.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "base/log.hpp"
#include "base/topology_handles.hpp"

namespace capstan::topology {
namespace {

Topology load() {
  Topology topology;
  if (hwloc_topology_init(topology.out()) != 0) return {};
  if (hwloc_topology_load(topology.get()) != 0) return {};
  return topology;
}

/// Constant once loaded, so any thread may read it.
hwloc_topology_t machine() {
  static const Topology topology = load();
  return topology.get();
}

}  // namespace

int numa_nodes() {
  if (machine() == nullptr) return 1;
  const int nodes = hwloc_get_nbobjs_by_type(machine(), HWLOC_OBJ_NUMANODE);
  return nodes > 0 ? nodes : 1;
}

void bind_near_this_thread(std::span<std::byte> memory) {
  if (numa_nodes() < 2) return;
  const Bitmap here(hwloc_bitmap_alloc());
  if (hwloc_get_last_cpu_location(machine(), here.get(), HWLOC_CPUBIND_THREAD) != 0 ||
      hwloc_set_area_membind(machine(), memory.data(), memory.size(), here.get(), HWLOC_MEMBIND_BIND, 0) !=
          0) {
    log::debug("cannot bind {} bytes to this thread's NUMA node: {}", memory.size(), std::strerror(errno));
  }
}

void advise_huge_pages(std::span<std::byte> memory) noexcept {
#ifdef MADV_HUGEPAGE
  constexpr std::uintptr_t kPage = 4096;
  const auto begin = (reinterpret_cast<std::uintptr_t>(memory.data()) + kPage - 1) / kPage * kPage;
  const auto end = reinterpret_cast<std::uintptr_t>(memory.data() + memory.size()) / kPage * kPage;
  // Best effort: a kernel without huge pages returns an error.
  if (begin < end) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
  (void)memory;
#endif
}

std::vector<int> allowed_cores() {
  std::vector<int> cores;
  const Bitmap allowed(hwloc_bitmap_alloc());
  if (machine() == nullptr || hwloc_get_cpubind(machine(), allowed.get(), HWLOC_CPUBIND_PROCESS) != 0)
    return cores;
  const int count = hwloc_get_nbobjs_by_type(machine(), HWLOC_OBJ_CORE);
  for (int i = 0; i < count; ++i) {
    const hwloc_obj_t core = hwloc_get_obj_by_type(machine(), HWLOC_OBJ_CORE, static_cast<unsigned>(i));
    if (core != nullptr && hwloc_bitmap_intersects(core->cpuset, allowed.get()) != 0) cores.push_back(i);
  }
  return cores;
}

namespace {

/// Formats hwloc's version number: 0x00020900 is "2.9".
std::string version_text(unsigned version) {
  return std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 0xff);
}

}  // namespace

std::string hwloc_header_version() { return version_text(HWLOC_API_VERSION); }
std::string hwloc_version() { return version_text(hwloc_get_api_version()); }

}  // namespace capstan::topology
