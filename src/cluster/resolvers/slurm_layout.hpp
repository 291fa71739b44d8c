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

/// The first of them that is set and not empty.
std::optional<Variable> find_variable(const Environment& process, std::initializer_list<std::string> names);
/// Throws Error(invalid_argument) for what is not a whole number from 0 on.
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
  std::optional<int> started;  // tasks, where Slurm says how many beside its lists
  std::string source;          // "SLURM_STEP_TASKS_PER_NODE=2(x2),1", for errors
};

/// What `options` say themselves, else the lists of the step, else those of the job. Throws what
/// SlurmClusterResolver does.
SlurmLayout find_slurm_layout(const SlurmOptions& options);

}  // namespace capstan::cluster
