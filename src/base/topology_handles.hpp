// topology_handles.hpp -- RAII owners of hwloc objects.
#pragma once

#include <hwloc.h>

#include "base/handle.hpp"

namespace capstan::topology {

struct TopologyTraits {
  using type = hwloc_topology_t;
  static type none() noexcept { return nullptr; }
  static void free(type h) noexcept { hwloc_topology_destroy(h); }
};
struct BitmapTraits {
  using type = hwloc_bitmap_t;
  static type none() noexcept { return nullptr; }
  static void free(type h) noexcept { hwloc_bitmap_free(h); }
};
using Topology = Handle<TopologyTraits>;
using Bitmap = Handle<BitmapTraits>;

}  // namespace capstan::topology
