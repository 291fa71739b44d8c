// gpu_assignment.hpp -- which of the GPUs that its process sees a rank uses.
#pragma once

#include <vector>

#include "cluster/runtime.hpp"

namespace capstan::cluster {

/// Numbers of so many GPUs, for the `turn`-th of those ranks of a host that want as many: each takes the next
/// ones, and after the last the first again, so that ranks share GPUs where there are too few. Throws
/// Error(failed_precondition) where one rank alone wants more than there are.
std::vector<int> gpus_in_turn(int turn, int wanted, int there);

/// The same of the GPUs that this process sees, for this rank, whose turn is its place among the members of
/// its role on its host. Throws Error(failed_precondition), also where there is none, with the reason; both
/// name the rank.
std::vector<int> own_gpus(const Runtime& runtime, int wanted);

/// Uses stand-ins where `--gpu-stand-ins` asks for them.
void choose_gpus(const Settings& settings);

}  // namespace capstan::cluster
