// topology_handles_test.cpp -- hwloc objects have one owner, which frees them.
#include "base/topology_handles.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace capstan::topology {
namespace {

TEST(TopologyHandles, MoveLeavesTheSourceEmpty) {
  Bitmap set(hwloc_bitmap_alloc());
  ASSERT_NE(set.get(), nullptr);
  hwloc_bitmap_set(set.get(), 3);
  const Bitmap moved = std::move(set);
  EXPECT_EQ(set.get(), nullptr);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(hwloc_bitmap_first(moved.get()), 3);
}

TEST(TopologyHandles, OwnsTopologyThatWasNotLoaded) {
  hwloc_topology_t raw = nullptr;
  ASSERT_EQ(hwloc_topology_init(&raw), 0);
  const Topology topology(raw);
  EXPECT_NE(hwloc_topology_set_xml(topology.get(), "/no/such/file.xml"), 0);
}

TEST(TopologyHandles, LoadsSyntheticTopology) {
  hwloc_topology_t raw = nullptr;
  ASSERT_EQ(hwloc_topology_init(&raw), 0);
  const Topology topology(raw);
  ASSERT_EQ(hwloc_topology_set_synthetic(topology.get(), "package:2 core:4 pu:1"), 0);
  ASSERT_EQ(hwloc_topology_load(topology.get()), 0);
  EXPECT_EQ(hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE), 8);
}

}  // namespace
}  // namespace capstan::topology
