// launchers.hpp -- compares the number of started ranks with the size of MPI_COMM_WORLD.
#pragma once

#include <optional>
#include <string>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

/// Number of ranks according to an environment variable of a launcher.
struct LauncherSize {
  std::string variable;
  int ranks = 0;
};

/// Reads the environment of this process; nullopt if no launcher started it. Also recognizes an srun step
/// without PMI, whose tasks each become a job of one process.
std::optional<LauncherSize> launcher_size();

/// Detects N processes that are each an MPI world of one rank. `mpi_ranks`: nullopt if MPI is not
/// initialized.
Finding judge_ranks(const std::optional<LauncherSize>& launched, std::optional<int> mpi_ranks);

/// Validates CAPSTAN_* variables and the file of CAPSTAN_CONFIG as a run does.
Finding check_settings(const Request& request);

}  // namespace capstan::launch::doctor
