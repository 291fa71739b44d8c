// slurm_layout.hpp -- which rank is on which host, from Slurm's variables.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "capstan/resolvers.hpp"

namespace capstan::cluster {

struct EnvironmentVariable {
  std::string name;
  std::string value;
};

/// Returns the first variable that is set and not empty.
std::optional<EnvironmentVariable> find_variable(const Environment& environment,
                                                 std::initializer_list<std::string> names);
/// Throws Error(invalid_argument) if the value is not an integer of at least 0.
int number_in(const EnvironmentVariable& variable);

struct SlurmTask {
  std::string host;
  int node = 0;   // index of the host, like SLURM_NODEID
  int local = 0;  // index among the tasks of its host, like SLURM_LOCALID
  friend bool operator==(const SlurmTask&, const SlurmTask&) = default;
};

struct SlurmLayout {
  std::vector<SlurmTask> tasks;  // by rank
  int max_tasks_per_host = 0;
  int rank = 0;  // of this process
  /// Number of tasks that Slurm started, if a variable has it. Without SlurmOptions::jobs,
  /// SlurmClusterResolver requires that it equals tasks.size().
  std::optional<int> started;
  std::string source;  // "SLURM_STEP_TASKS_PER_NODE=2(x2),1", for errors
};

/// Returns the layout from `options`, else from the variables of the step, else from those of the job. Throws
/// the errors of SlurmClusterResolver's constructor.
SlurmLayout find_slurm_layout(const SlurmOptions& options);

}  // namespace capstan::cluster
