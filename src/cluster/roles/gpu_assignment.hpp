// gpu_assignment.hpp -- assigns the GPUs that a process sees to ranks.
#pragma once

#include <vector>

#include "cluster/runtime.hpp"

namespace capstan::cluster {

/// Returns `count` GPU numbers for the `turn`-th of the ranks of a host that want as many. Each rank takes
/// the next ones, cyclically, so that ranks share GPUs if there are too few. Throws
/// Error(failed_precondition) if one rank wants more than there are.
std::vector<int> gpus_in_turn(int turn, int wanted, int there);

/// The same for this rank and the GPUs that this process sees; its turn is its position among the members of
/// its role on its host. Throws Error(failed_precondition), also if there is no GPU, with the reason; both
/// name the rank.
std::vector<int> assigned_gpus(const Runtime& runtime, int wanted);

/// Uses stand-ins if `--gpu-stand-ins` requests them.
void choose_gpus(const Settings& settings);

}  // namespace capstan::cluster
