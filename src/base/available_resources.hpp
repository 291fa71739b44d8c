// available_resources.hpp -- the CPUs, NUMA nodes, adapters and GPUs that this process may use, from hwloc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace capstan::topology {

/// A NUMA node, by its OS index, and the hardware threads on it that this process may use ("0-3,8").
struct NodeCpus {
  std::int32_t node = 0;
  std::string cpus;
  friend bool operator==(const NodeCpus&, const NodeCpus&) = default;
};

/// An RDMA adapter ("mlx5_0") or a GPU (PCI address), and its NUMA node; -1 if the system does not report it.
struct Device {
  std::string name;
  std::int32_t node = -1;
  friend bool operator==(const Device&, const Device&) = default;
};

/// Resources that the launcher, the batch system and the cgroup leave to this process, and the UCX transports
/// that its rank may use. Every rank sends them to the coordinator when it joins.
struct AvailableResources {
  std::string cpus;                  // hardware threads ("0-3,8"); "" if hwloc fails
  std::int32_t cpu_count = 0;        // number of hardware threads
  std::int32_t core_count = 0;       // number of cores with at least one of those threads
  std::vector<NodeCpus> nodes = {};  // nodes with at least one of those threads
  std::vector<Device> adapters = {};
  std::vector<Device> gpus = {};
  std::vector<std::string> network = {};  // UCX transports that reach other hosts: "tcp"
};

/// Returns the resources within the current binding of this process, without `network`. The first call takes
/// milliseconds.
AvailableResources available_resources();

/// Binds all threads of this process, and those that they start later, to hardware threads `cpus` ("0-3").
/// Returns false and logs a warning if the system refuses.
bool bind_this_process(const std::string& cpus);

}  // namespace capstan::topology
