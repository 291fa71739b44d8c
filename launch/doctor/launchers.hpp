// launchers.hpp -- what the launcher says it has started, and what MPI sees of it.
#pragma once

#include <optional>
#include <string>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

/// How many ranks a launcher's variable says there are.
struct Launched {
  std::string variable;
  int ranks = 0;
};

/// From the environment of this process; nothing when it was started alone. A step of srun counts also
/// without PMI, which is how a job becomes N processes that know nothing of each other.
std::optional<Launched> launched_by();

/// The singleton trap: N processes that are each a world of one rank. `mpi_ranks`: nothing when MPI was not
/// started.
Finding judge_ranks(const std::optional<Launched>& launched, std::optional<int> mpi_ranks);

/// CAPSTAN_* variables, as a run would read them.
Finding check_settings(const Request& request);

}  // namespace capstan::launch::doctor
