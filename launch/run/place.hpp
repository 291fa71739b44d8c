// place.hpp -- where `capstan run` is: what there is to start ranks with, and a Slurm job around it.
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

/// From the text of `mpirun --version`; empty for what is neither of the two.
std::optional<Mpi> mpi_of(std::string_view version_text);

/// The Slurm job that this process is in.
struct Allocation {
  std::string job = {};
  int tasks = 0;  ///< in all its components
  int hosts = 1;
  int components = 1;  ///< above 1 in a heterogeneous job
  int most_tasks_on_a_host = 1;
  int cpus_per_task = 0;  ///< 0: not asked for
};

/// Empty outside of Slurm. Throws Error(invalid_argument) naming the variable that cannot be read.
std::optional<Allocation> allocation_of(const Environment& environment);

struct Place {
  int cores = 1;  ///< that this process may use
  bool root = false;
  std::optional<Mpi> mpi = {};        ///< of the mpirun that is asked for, when it is there
  std::string mpirun_says = {};       ///< the first line of a --version that is of neither
  bool srun = false;                  ///< is there
  std::vector<std::string> pmi = {};  ///< what `srun --mpi=list` offers
  std::optional<Allocation> allocation = {};
  std::vector<std::string> to_forward = {};  ///< names of variables that remote ranks need as well
};

/// Asks the machine: `mpirun --version`, `srun --mpi=list`, each with a time-out.
Place look_around(const std::string& mpirun, const Environment& environment);

Environment environment_of(const char* const* variables);

}  // namespace capstan::launch::run
