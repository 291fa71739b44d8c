// binding.hpp -- which rank runs where on its host: decided alike by every rank from what all have said.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cluster/membership/member.hpp"

namespace capstan::cluster {

/// Where one rank runs.
struct Binding {
  std::string cpus;          // "" where hwloc could not tell
  std::int32_t node = -1;    // the only NUMA node that it runs on
  std::string adapter = {};  // the nearest; "" for none
  std::string gpu = {};
  bool narrows = false;  // `cpus` is less than the launcher left it

  friend bool operator==(const Binding&, const Binding&) = default;
};

/// By rank. A ps takes its turn among its host's adapters and runs on the NUMA node of its own, without any
/// among the nodes; so its heap lies there, too. A worker takes its turn among the GPUs and runs on the node
/// of its own; without one, wherever it was put, as the coordinator and the evaluator do. Nobody leaves what
/// the launcher allowed.
std::vector<Binding> plan_binding(const std::vector<Member>& members);

/// A line for each rank: "ps 1 (rank 3 on n1): cpus 8-15, NUMA node 1, mlx5_1"; at most `most` of them.
std::vector<std::string> binding_table(const std::vector<Member>& members,
                                       const std::vector<Binding>& bindings, std::size_t most);

/// What will be slow: busy threads that share one core, and hosts with fewer cpus than workers, than ps, or,
/// in a job on several hosts, than both together. A sentence each, which says what to do.
std::vector<std::string> binding_warnings(const std::vector<Member>& members,
                                          const std::vector<Binding>& bindings);

}  // namespace capstan::cluster
