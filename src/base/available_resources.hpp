// available_resources.hpp -- what a process may use of its host: cores, NUMA nodes, adapters, GPUs; by hwloc.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace capstan::topology {

/// A NUMA node by the system's number, and those of its hardware threads that may be used: "0-3,8".
struct NodeCpus {
  std::int32_t node = 0;
  std::string cpus;
  friend bool operator==(const NodeCpus&, const NodeCpus&) = default;
};

/// An RDMA adapter ("mlx5_0") or a GPU (its PCI address), and the node that it is at; -1 where the system
/// does not say.
struct Device {
  std::string name;
  std::int32_t node = -1;
  friend bool operator==(const Device&, const Device&) = default;
};

/// What a launcher, a batch system or a cgroup has left to this process, and UCX to its ranks. Travels with a
/// rank's hello.
struct AvailableResources {
  std::string cpus;                  // hardware threads, "" where hwloc cannot tell
  std::int32_t cpu_count = 0;        // how many those are
  std::int32_t core_count = 0;       // of which cores
  std::vector<NodeCpus> nodes = {};  // with at least one of them
  std::vector<Device> adapters = {};
  std::vector<Device> gpus = {};
  std::vector<std::string> network = {};  // kinds of UCX's transports that reach other hosts: "tcp"
};

/// As it is bound now, without `network`; the first call takes some milliseconds.
AvailableResources available_resources();

/// All threads of this process, and those that they start, run on these ("0-3") from now on. False, and a
/// line in the log, when the system refuses.
bool bind_this_process(const std::string& cpus);

}  // namespace capstan::topology
