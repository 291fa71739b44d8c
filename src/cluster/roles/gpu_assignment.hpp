// gpu_assignment.hpp -- assigns the GPUs that a process sees to ranks.
#pragma once

#include <vector>

#include "cluster/runtime.hpp"

namespace capstan::cluster {

/// Returns the numbers of `wanted` of the `there` GPUs for rank number `turn` of a host, whose ranks all get
/// `wanted` GPUs. Each rank takes the next ones, cyclically, so that ranks share GPUs if there are too few.
/// Throws Error(failed_precondition) if `wanted` exceeds `there`.
std::vector<int> round_robin_gpus(int turn, int wanted, int there);

/// Calls round_robin_gpus() for this rank and the GPUs that this process sees; its turn is its position among
/// the members of its role on its host. Throws Error(failed_precondition), also if there is no GPU. The
/// message names the rank and the reason.
std::vector<int> assigned_gpus(const Runtime& runtime, int wanted);

/// Uses stand-ins if `--gpu-stand-ins` requests them.
void choose_gpus(const Settings& settings);

}  // namespace capstan::cluster
