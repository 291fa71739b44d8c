// launch_context.hpp -- where `capstan run` runs: the available launchers and the Slurm job around it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::launch::run {

using Environment = std::map<std::string, std::string>;

enum class MpiKind { open_mpi, mpich };

struct Mpi {
  MpiKind kind = MpiKind::open_mpi;
  std::string version = {};
};

/// Parses the output of `mpirun --version`; nullopt for any other MPI.
std::optional<Mpi> mpi_of(std::string_view version_text);

/// The Slurm job around this process.
struct Allocation {
  std::string job_id = {};
  int tasks = 0;  ///< sum over the components
  int hosts = 1;
  int components = 1;  ///< above 1 in a heterogeneous job
  int max_tasks_per_host = 1;
  int cpus_per_task = 0;  ///< 0: not requested
};

/// Nullopt outside of Slurm. Throws Error(invalid_argument) with the name of the malformed variable.
std::optional<Allocation> allocation_of(const Environment& environment);

struct LaunchContext {
  int cores = 1;  ///< number of cores in the affinity mask of this process
  bool root = false;
  std::optional<Mpi> mpi = {};           ///< nullopt if mpirun is missing or of another MPI
  std::string mpirun_version_line = {};  ///< first line of --version if the MPI is unknown
  bool srun = false;                     ///< available; set only in a Slurm job
  std::vector<std::string> pmi = {};     ///< plugins that `srun --mpi=list` lists
  std::optional<Allocation> allocation = {};
  std::vector<std::string> forwarded_variables = {};  ///< environment variables for remote ranks
};

/// Runs `mpirun --version` and, in a Slurm job, `srun --mpi=list`, for at most 20 s each. Throws
/// Error(invalid_argument).
LaunchContext detect_launch_context(const std::string& mpirun, const Environment& environment);

/// `variables` has the format of `environ`.
Environment environment_of(const char* const* variables);

}  // namespace capstan::launch::run
