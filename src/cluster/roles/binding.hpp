// binding.hpp -- where each rank runs on its host: computed by every rank from the same input.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/membership/member.hpp"

namespace capstan::cluster {

/// Where one rank runs.
struct Binding {
  std::string cpus;          // "" if hwloc does not know
  std::int32_t node = -1;    // the only NUMA node that it runs on; -1: several
  std::string adapter = {};  // the nearest adapter; "" for none
  std::string gpu = {};
  bool narrows = false;  // `cpus` has fewer CPUs than the launcher allows

  friend bool operator==(const Binding&, const Binding&) = default;
};

/// Returns the binding of each rank. The ps of a host get its adapters round-robin, and each runs on its
/// adapter's NUMA node, where its heap is then allocated; without adapters, they get the nodes round-robin.
/// Workers get the GPUs round-robin, and run on their GPU's node. Workers without GPUs, the coordinator and
/// the evaluator stay where the launcher put them. All stay within the CPUs that the launcher allows.
std::vector<Binding> plan_binding(const std::vector<Member>& members);

/// "1 coordinator, 2 ps, 4 workers, 1 evaluator on 3 hosts"
std::string job_summary(const std::vector<Member>& members);

/// Returns a line per rank, at most `most`:
/// "ps 1 (rank 3 on n1) is process 4711: cpus 8-15, NUMA node 1, mlx5_1".
std::vector<std::string> binding_table(const std::vector<Member>& members,
                                       const std::vector<Binding>& bindings, std::size_t most);

/// Returns a sentence, with advice, for anything that will be slow: busy threads that share a core, and hosts
/// with fewer CPUs than workers, than ps, or, in a job on several hosts, than both together.
std::vector<std::string> binding_warnings(const std::vector<Member>& members,
                                          const std::vector<Binding>& bindings);

}  // namespace capstan::cluster
