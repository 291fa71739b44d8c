// available_resources.cpp -- loads hwloc with I/O devices, which topology.cpp omits.
#include "base/available_resources.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/log.hpp"
#include "base/topology_handles.hpp"

namespace capstan::topology {
namespace {

constexpr unsigned kNvidia = 0x10de;
constexpr unsigned kDisplayClass = 0x03;  // upper byte of the PCI class

Topology load_with_devices() {
  Topology topology;
  if (hwloc_topology_init(topology.out()) != 0) return {};
  (void)hwloc_topology_set_io_types_filter(topology.get(), HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  // These components open the GPUs, which takes seconds and allocates GPU memory.
  for (const char* component : {"cuda", "nvml", "opencl", "gl", "rsmi", "levelzero"}) {
    (void)hwloc_topology_set_components(topology.get(), HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
  }
  if (hwloc_topology_load(topology.get()) != 0) return {};
  return topology;
}

/// Loaded once and never freed: hwloc's PCI plugin leaks on every load. Immutable, so any thread may read it.
hwloc_topology_t machine_with_devices() {
  static const Topology* const topology = new Topology(load_with_devices());
  return topology->get();
}

std::string list_of(hwloc_const_bitmap_t bitmap) {
  std::string text(static_cast<std::size_t>(hwloc_bitmap_list_snprintf(nullptr, 0, bitmap)), '\0');
  (void)hwloc_bitmap_list_snprintf(text.data(), text.size() + 1, bitmap);
  return text;
}

std::int32_t node_of(hwloc_topology_t topology, hwloc_obj_t device) {
  const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, device);
  // A device attached above the NUMA level has no single nearest node.
  if (near == nullptr || near->nodeset == nullptr || hwloc_bitmap_weight(near->nodeset) != 1) return -1;
  return hwloc_bitmap_first(near->nodeset);
}

std::vector<Device> adapters(hwloc_topology_t topology) {
  std::vector<Device> found;
  for (hwloc_obj_t at = nullptr; (at = hwloc_get_next_osdev(topology, at)) != nullptr;) {
    if (at->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS)
      found.push_back({at->name, node_of(topology, at)});
  }
  return found;
}

std::vector<Device> gpus(hwloc_topology_t topology) {
  std::vector<Device> found;
  for (hwloc_obj_t at = nullptr; (at = hwloc_get_next_pcidev(topology, at)) != nullptr;) {
    const auto& pci = at->attr->pcidev;
    if (pci.vendor_id != kNvidia || pci.class_id >> 8 != kDisplayClass) continue;
    std::array<char, 32> address{};
    std::snprintf(address.data(), address.size(), "%04x:%02x:%02x.%01x", static_cast<unsigned>(pci.domain),
                  static_cast<unsigned>(pci.bus), static_cast<unsigned>(pci.dev),
                  static_cast<unsigned>(pci.func));
    found.push_back({address.data(), node_of(topology, at)});
  }
  return found;
}

}  // namespace

AvailableResources available_resources() {
  AvailableResources resources;
  hwloc_topology_t const topology = machine_with_devices();
  const Bitmap allowed(hwloc_bitmap_alloc());
  if (topology == nullptr || !allowed ||
      hwloc_get_cpubind(topology, allowed.get(), HWLOC_CPUBIND_PROCESS) != 0) {
    return resources;
  }
  (void)hwloc_bitmap_and(allowed.get(), allowed.get(), hwloc_topology_get_allowed_cpuset(topology));
  resources.cpus = list_of(allowed.get());
  resources.cpu_count = hwloc_bitmap_weight(allowed.get());
  for (hwloc_obj_t core = nullptr;
       (core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr;) {
    resources.core_count += hwloc_bitmap_intersects(core->cpuset, allowed.get());
  }
  const Bitmap here(hwloc_bitmap_alloc());
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr;) {
    (void)hwloc_bitmap_and(here.get(), node->cpuset, allowed.get());
    if (hwloc_bitmap_iszero(here.get()) != 0) continue;
    resources.nodes.push_back({static_cast<std::int32_t>(node->os_index), list_of(here.get())});
  }
  resources.adapters = adapters(topology);
  resources.gpus = gpus(topology);
  return resources;
}

bool bind_this_process(const std::string& cpus) {
  const Bitmap set(hwloc_bitmap_alloc());
  const bool bound = machine_with_devices() != nullptr && set &&
                     hwloc_bitmap_list_sscanf(set.get(), cpus.c_str()) == 0 &&
                     hwloc_set_cpubind(machine_with_devices(), set.get(), HWLOC_CPUBIND_PROCESS) == 0;
  if (!bound) log::warn("cannot bind this process to hardware threads {}: {}", cpus, std::strerror(errno));
  return bound;
}

}  // namespace capstan::topology
