// slurm_layout.hpp -- which rank is on which host, from Slurm's variables.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "capstan/resolvers.hpp"

namespace capstan::cluster {

struct Variable {
  std::string name;
  std::string value;
};

/// Returns the first variable that is set and not empty.
std::optional<Variable> find_variable(const Environment& process, std::initializer_list<std::string> names);
/// Throws Error(invalid_argument) if the value is not an integer of at least 0.
int number_in(const Variable& variable);

struct SlurmTask {
  std::string host;
  int node = 0;   // among the hosts, as SLURM_NODEID
  int local = 0;  // among the tasks of its host, as SLURM_LOCALID
  friend bool operator==(const SlurmTask&, const SlurmTask&) = default;
};

struct SlurmLayout {
  std::vector<SlurmTask> tasks;  // by rank
  int most_tasks_of_a_host = 0;
  int rank = 0;                // of this process
  std::optional<int> started;  // number of tasks, if Slurm has it apart from its lists
  std::string source;          // "SLURM_STEP_TASKS_PER_NODE=2(x2),1", for errors
};

/// Returns the layout that `options` state, else that of the step, else that of the job. Throws what
/// SlurmClusterResolver does.
SlurmLayout find_slurm_layout(const SlurmOptions& options);

}  // namespace capstan::cluster
