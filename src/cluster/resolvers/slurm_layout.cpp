// slurm_layout.cpp -- combines lists of hosts and of tasks per host, in rank order.
#include "cluster/resolvers/slurm_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>

#include "capstan/error.hpp"
#include "cluster/resolvers/slurm_lists.hpp"

namespace capstan::cluster {
namespace {

using Component = std::vector<HostTasks>;  // of a heterogeneous job; other jobs have one component

constexpr int kMaxTasks = 4'000'000;  // far beyond any machine, so a larger number is a mistake

/// Slurm's lists, and their sources.
struct Lists {
  std::vector<Component> components;
  std::string source;
  std::optional<int> started = {};
};

Error failed(const std::string& message) { return Error(Code::failed_precondition, message); }

EnvironmentVariable need(const Environment& environment, std::initializer_list<std::string> names) {
  if (auto found = find_variable(environment, names)) return *found;
  throw failed(
      fmt::format("{} not found in environment. Not running inside a Slurm step? Start the program with "
                  "srun, or give SlurmOptions the hosts and the rank",
                  fmt::join(names, " and ")));
}

Component pair_up(const EnvironmentVariable& list, const std::optional<EnvironmentVariable>& counts,
                  int tasks_per_node) {
  const std::vector<std::string> hosts = expand_hosts(list.name, list.value);
  const std::vector<int> tasks =
      counts ? expand_counts(counts->name, counts->value) : std::vector<int>(hosts.size(), tasks_per_node);
  if (tasks.size() != hosts.size()) {
    throw failed(
        fmt::format("{}=\"{}\" has {} hosts, but {}=\"{}\" has the task counts of {}; start the program "
                    "with srun, or give SlurmOptions the hosts",
                    list.name, list.value, hosts.size(), counts->name, counts->value, tasks.size()));
  }
  Component component;
  for (std::size_t i = 0; i < hosts.size(); ++i) component.push_back({hosts[i], tasks[i]});
  return component;
}

std::string list_of_component(int component) {
  return fmt::format("SLURM_JOB_NODELIST_HET_GROUP_{}", component);
}

/// Reads the variables of each component: outside of a step, the plain variables describe only component 0.
Lists lists_of_heterogeneous_job(const SlurmOptions& options, int components) {
  Lists lists;
  for (int i = 0; i < components; ++i) {
    const EnvironmentVariable list = need(options.process, {list_of_component(i)});
    std::optional<EnvironmentVariable> counts;
    if (!options.tasks_per_node) {
      counts = need(options.process, {fmt::format("SLURM_TASKS_PER_NODE_HET_GROUP_{}", i)});
    }
    lists.components.push_back(pair_up(list, counts, options.tasks_per_node.value_or(0)));
    const EnvironmentVariable& source = counts ? *counts : list;
    lists.source += fmt::format("{}{}={}", i == 0 ? "" : " ", source.name, source.value);
  }
  return lists;
}

/// In a step of several components the list of hosts is sorted by name, but ranks are numbered by component.
std::vector<Component> cut_into_components(const Component& whole, const Environment& process,
                                           int components) {
  std::map<std::string, int> tasks_on;
  for (const HostTasks& host : whole) tasks_on[host.host] += host.tasks;
  std::set<std::string> done;
  std::vector<Component> cut;
  for (int i = 0; i < components; ++i) {
    const EnvironmentVariable list = need(process, {list_of_component(i)});
    Component component;
    for (const std::string& host : expand_hosts(list.name, list.value)) {
      if (!tasks_on.contains(host)) continue;
      if (!done.insert(host).second) {
        throw failed(
            fmt::format("{} is in two components of the heterogeneous job ({}={}), and Slurm does not report "
                        "how many tasks of each run on it; give SlurmOptions the hosts",
                        host, list.name, list.value));
      }
      component.push_back({host, tasks_on[host]});
    }
    cut.push_back(std::move(component));
  }
  for (const auto& [host, tasks] : tasks_on) {
    if (!done.contains(host)) {
      throw failed(fmt::format("{} of SLURM_STEP_NODELIST is in none of SLURM_JOB_NODELIST_HET_GROUP_0 to {}",
                               host, components - 1));
    }
  }
  return cut;
}

Lists lists_of_environment(const SlurmOptions& options) {
  const Environment& process = options.process;
  const bool step = find_variable(process, {"SLURM_STEP_NODELIST"}).has_value();
  const auto size = find_variable(process, {"SLURM_HET_SIZE"});
  const int components = size ? number_in(*size) : 1;
  if (components > 1 && !step) return lists_of_heterogeneous_job(options, components);

  const EnvironmentVariable list = need(process, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"});
  std::optional<EnvironmentVariable> counts;
  if (!options.tasks_per_node) counts = need(process, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  const Component whole = pair_up(list, counts, options.tasks_per_node.value_or(0));
  const EnvironmentVariable& source = counts ? *counts : list;
  std::optional<EnvironmentVariable> started;
  if (counts) started = find_variable(process, {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  return {components > 1 ? cut_into_components(whole, process, components) : std::vector<Component>{whole},
          fmt::format("{}={}", source.name, source.value),
          started ? std::optional(number_in(*started)) : std::nullopt};
}

/// Number of consecutive ranks that a host gets before the next host gets any.
int ranks_a_turn(const Environment& process) {
  const std::string value = process.variable("SLURM_DISTRIBUTION").value_or("");
  const std::string nodes = value.substr(0, value.find_first_of(":,"));
  if (nodes == "cyclic") return 1;
  if (nodes == "plane") return std::max(1, number_in(need(process, {"SLURM_DIST_PLANESIZE"})));
  if (nodes == "arbitrary") {
    throw failed(
        "SLURM_DISTRIBUTION=arbitrary: Slurm does not report which rank is on which host; start with srun "
        "--distribution=block, cyclic or plane, or give SlurmOptions the hosts");
  }
  return std::numeric_limits<int>::max();
}

void check_counts(const std::vector<Component>& components) {
  std::int64_t all = 0;
  for (const Component& component : components) {
    for (const HostTasks& host : component) {
      if (host.host.empty() || host.tasks < 1) {
        throw Error(
            Code::invalid_argument,
            fmt::format("\"{}\" with {} tasks: expected a host's name and 1 or more", host.host, host.tasks));
      }
      all += host.tasks;
    }
  }
  if (all > kMaxTasks) {
    throw Error(Code::invalid_argument, fmt::format("{} tasks; expected at most {}", all, kMaxTasks));
  }
}

/// Appends the ranks of one component. `on_host`: tasks so far, by host.
void place(const Component& component, int turn, int first_node, std::map<std::string, int>& on_host,
           std::vector<SlurmTask>& tasks) {
  std::vector<int> left;
  for (const HostTasks& host : component) left.push_back(host.tasks);
  for (bool any = true; any;) {
    any = false;
    for (std::size_t i = 0; i < component.size(); ++i) {
      const int now = std::min(left[i], turn);
      for (int task = 0; task < now; ++task) {
        tasks.push_back({component[i].host, first_node + static_cast<int>(i), on_host[component[i].host]++});
      }
      left[i] -= now;
      any = any || left[i] > 0;
    }
  }
}

/// If mpirun runs inside Slurm, the variables of Slurm describe the daemons of mpirun, or the batch script.
void refuse_mpirun(const Environment& process, const SlurmLayout& layout) {
  for (const std::string prefix : {"OMPI_COMM_WORLD_", "PMI_"}) {
    const auto size = find_variable(process, {prefix + "SIZE"});
    const auto rank = find_variable(process, {prefix + "RANK"});
    if (!size || !rank) continue;
    if (number_in(*size) != static_cast<int>(layout.tasks.size()) || number_in(*rank) != layout.rank) {
      throw failed(
          fmt::format("this is rank {} of {} according to mpirun, but rank {} of {} according to Slurm ({}): "
                      "use MpiClusterResolver, or start the program with srun",
                      rank->value, size->value, layout.rank, layout.tasks.size(), layout.source));
    }
  }
}

void check_own_place(const Environment& process, const SlurmLayout& layout) {
  const auto node = find_variable(process, {"SLURM_NODEID"});
  const auto local = find_variable(process, {"SLURM_LOCALID"});
  if (!node || !local) return;
  const SlurmTask& task = layout.tasks[static_cast<std::size_t>(layout.rank)];
  if (number_in(*node) == task.node && number_in(*local) == task.local) return;
  throw failed(
      fmt::format("rank {} should be task {} of node {} ({}) according to {}, but SLURM_LOCALID={} "
                  "SLURM_NODEID={}; start with srun --distribution=block, or give SlurmOptions the hosts",
                  layout.rank, task.local, task.node, task.host, layout.source, local->value, node->value));
}

}  // namespace

std::optional<EnvironmentVariable> find_variable(const Environment& environment,
                                                 std::initializer_list<std::string> names) {
  for (const std::string& name : names) {
    std::optional<std::string> value = environment.variable(name);
    if (value && !value->empty()) return EnvironmentVariable{name, *value};
  }
  return std::nullopt;
}

int number_in(const EnvironmentVariable& variable) {
  int number = -1;
  const char* const last = variable.value.data() + variable.value.size();
  const auto [end, error] = std::from_chars(variable.value.data(), last, number);
  if (error != std::errc() || end != last || number < 0) {
    throw Error(Code::invalid_argument,
                fmt::format("{}=\"{}\": expected a whole number from 0 on", variable.name, variable.value));
  }
  return number;
}

SlurmLayout find_slurm_layout(const SlurmOptions& options) {
  const bool told = !options.hosts.empty();
  const Lists lists = told ? Lists{{options.hosts}, "SlurmOptions::hosts"} : lists_of_environment(options);
  check_counts(lists.components);
  SlurmLayout layout;
  layout.source = lists.source;
  layout.started = lists.started;
  std::map<std::string, int> on_host;
  const int turn = told ? std::numeric_limits<int>::max() : ranks_a_turn(options.process);
  int nodes = 0;
  for (const Component& component : lists.components) {
    place(component, turn, nodes, on_host, layout.tasks);
    nodes += static_cast<int>(component.size());
  }
  for (const auto& [host, tasks] : on_host) {
    layout.max_tasks_per_host = std::max(layout.max_tasks_per_host, tasks);
  }
  layout.rank = options.rank ? *options.rank : number_in(need(options.process, {"SLURM_PROCID"}));
  if (!told && !options.rank) refuse_mpirun(options.process, layout);
  if (layout.rank < 0 || layout.rank >= static_cast<int>(layout.tasks.size())) {
    throw failed(fmt::format("this is rank {}, but there are {} tasks ({})", layout.rank, layout.tasks.size(),
                             layout.source));
  }
  if (!told && !options.rank) check_own_place(options.process, layout);
  return layout;
}

}  // namespace capstan::cluster
