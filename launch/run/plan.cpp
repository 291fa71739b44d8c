// plan.cpp -- chooses the launcher, the number of ranks and the flags.
#include "launch/run/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "capstan/error.hpp"

namespace capstan::launch::run {
namespace {

Error refused(const std::string& message) { return Error(Code::invalid_argument, message); }

/// Slots for ranks. If `slots` is not set, any number of ranks may run on this host.
struct Capacity {
  std::optional<int> slots = {};
  int hosts = 1;
  std::string source = {};  ///< "--hosts FILE" or "Slurm job 7"
  std::string remedy = {};  ///< how to get more slots
};

Capacity capacity_of(const Request& request, const LaunchContext& context, const std::vector<Host>& hosts) {
  if (!hosts.empty()) {
    int slots = 0;
    for (const Host& host : hosts) slots += host.slots;
    return {slots, static_cast<int>(hosts.size()), "--hosts " + request.hosts, "add slots to its hosts"};
  }
  if (context.allocation) {
    return {context.allocation->tasks, context.allocation->hosts, "Slurm job " + context.allocation->job_id,
            "pass a larger --ntasks to sbatch or salloc"};
  }
  return {};
}

struct Counts {
  std::optional<int> ps = {};  ///< nullopt: the program uses the default of the setting
  std::optional<int> workers = {};
  int ranks = 0;
};

/// Number of ranks that are not workers.
int non_worker_ranks(const Roles& roles, int ps, int hosts) {
  const int all_ps = ps * (roles.ps_per_host ? hosts : 1);
  return 1 + all_ps * (roles.replicas ? 2 : 1) + roles.spares + (roles.evaluator ? 1 : 0);
}

/// Returns one ps per host, like the default of the setting, but at most one per three workers.
int default_ps(const Roles& roles, int workers, int hosts) {
  return roles.ps_per_host ? 1 : std::clamp(hosts, 1, std::max(1, (workers + 1) / 3));
}

Counts counts_without_slots(const Roles& roles, const LaunchContext& context) {
  if (!roles.roles_variable.empty()) {
    throw refused(fmt::format(
        "{} is set, but the number of ranks is unknown; use --ps and --workers instead, or start the ranks "
        "with mpirun",
        roles.roles_variable));
  }
  Counts counts;
  counts.workers = roles.workers.value_or(context.cores);
  counts.ps = roles.ps.value_or(1);
  counts.ranks = non_worker_ranks(roles, *counts.ps, 1) + *counts.workers;
  return counts;
}

/// All slots become ranks unless the number of workers is given.
Counts counts_in(const Capacity& capacity, const Roles& roles) {
  Counts counts{roles.ps, roles.workers, *capacity.slots};
  if (!roles.workers) return counts;
  if (!counts.ps) counts.ps = default_ps(roles, *roles.workers, capacity.hosts);
  counts.ranks = non_worker_ranks(roles, *counts.ps, capacity.hosts) + *roles.workers;
  return counts;
}

void require_capacity(const Capacity& capacity, const Counts& counts, const Roles& roles) {
  const int fewest = non_worker_ranks(roles, counts.ps.value_or(1), capacity.hosts) + 1;
  if (*capacity.slots < fewest) {
    throw refused(
        fmt::format("{} has {} slot{}, expected at least {} for this job; {}{}", capacity.source,
                    *capacity.slots, *capacity.slots == 1 ? "" : "s", fewest, capacity.remedy,
                    *capacity.slots == 1 ? ", or run all roles in one process with --launcher local" : ""));
  }
  if (counts.ranks > *capacity.slots) {
    throw refused(
        fmt::format("{} ps and {} workers need {} ranks, but {} has {} slots; {} or reduce the roles",
                    counts.ps.value_or(1), counts.workers.value_or(1), counts.ranks, capacity.source,
                    *capacity.slots, capacity.remedy));
  }
}

Counts count_ranks(const Capacity& capacity, const Roles& roles, const LaunchContext& context) {
  if (!capacity.slots) return counts_without_slots(roles, context);
  const Counts counts = counts_in(capacity, roles);
  require_capacity(capacity, counts, roles);
  return counts;
}

Launcher choose(const Request& request, const LaunchContext& context) {
  const bool het = context.allocation && context.allocation->components > 1;
  if (request.launcher == Launcher::srun && !context.allocation) {
    throw Error(Code::failed_precondition,
                "--launcher srun: not in a Slurm job; call capstan run in a batch script or under salloc");
  }
  if (request.launcher == Launcher::mpirun && het) {
    throw refused(
        "--launcher mpirun: mpirun cannot span the components of a heterogeneous Slurm job; use srun");
  }
  if (request.launcher == Launcher::srun && !request.hosts.empty()) {
    throw refused("--hosts: not supported by srun, which uses the hosts of its job; omit it");
  }
  if (request.launcher != Launcher::automatic) return request.launcher;
  if (het || (context.allocation && !context.mpi && context.srun)) return Launcher::srun;
  return Launcher::mpirun;
}

/// The --mpi plugin of srun: pmi2 for MPICH if it is offered, else PMIx.
std::string pmi_for(const LaunchContext& context) {
  const bool mpich = context.mpi && context.mpi->kind == MpiKind::mpich;
  const auto offers = [&context](std::string_view name) {
    return std::find(context.pmi.begin(), context.pmi.end(), name) != context.pmi.end();
  };
  const std::string_view wanted = mpich && offers("pmi2") ? "pmi2" : "pmix";
  if (!context.pmi.empty() && !offers(wanted)) {
    throw Error(
        Code::failed_precondition,
        fmt::format("srun --mpi=list offers {}, expected {}; ask the site for it or use --launcher mpirun",
                    fmt::join(context.pmi, ", "), wanted));
  }
  return std::string(wanted);
}

std::vector<std::string> srun_words(const LaunchContext& context, const Counts& counts) {
  const Allocation& job = *context.allocation;
  // Capstan handles failed ranks and dead nodes itself, so srun must not end the job.
  std::vector<std::string> words{"srun", "--mpi=" + pmi_for(context), "--kill-on-bad-exit=0", "--no-kill",
                                 "--export=ALL"};
  if (job.components > 1) {
    if (counts.ranks != job.tasks) {
      throw refused(
          fmt::format("heterogeneous Slurm job {} has {} tasks, which all become ranks, but {} ranks were "
                      "requested",
                      job.job_id, job.tasks, counts.ranks));
    }
    words.push_back(fmt::format("--het-group=0-{}", job.components - 1));
    return words;
  }
  words.push_back(fmt::format("--ntasks={}", counts.ranks));
  // Since 22.05 srun does not inherit it from sbatch.
  if (job.cpus_per_task > 0) words.push_back(fmt::format("--cpus-per-task={}", job.cpus_per_task));
  return words;
}

std::string list_of(const std::vector<Host>& hosts) {
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(fmt::format("{}:{}", host.name, host.slots));
  return fmt::format("{}", fmt::join(names, ","));
}

int max_ranks_per_host(const LaunchContext& context, const std::vector<Host>& hosts, int ranks) {
  int most = context.allocation ? context.allocation->max_tasks_per_host : ranks;
  if (!hosts.empty()) most = 0;
  for (const Host& host : hosts) most = std::max(most, host.slots);
  return std::min(most, ranks);
}

std::vector<std::string> open_mpi_words(const Request& request, const LaunchContext& context,
                                        const std::vector<Host>& hosts,
                                        const std::vector<std::pair<std::string, std::string>>& variables,
                                        int ranks) {
  std::vector<std::string> words{request.mpirun};
  if (context.root) words.emplace_back("--allow-run-as-root");
  words.insert(words.end(), {"-n", std::to_string(ranks)});
  const bool alone = hosts.empty() && !context.allocation;
  if (!hosts.empty()) words.insert(words.end(), {"-H", list_of(hosts)});
  // Open MPI counts cores, not hardware threads, as slots, and binds each rank with all its threads to one
  // core even if there are more ranks than cores.
  if (alone || max_ranks_per_host(context, hosts, ranks) > context.cores) {
    words.insert(words.end(), {"--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none"});
  }
  if (alone) return words;  // local ranks inherit the variables
  std::vector<std::string> names = context.forwarded_variables;
  for (const auto& [name, value] : variables) names.push_back(name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) words.insert(words.end(), {"-x", name});
  return words;
}

/// Hydra forwards all variables, does not bind, and permits root.
std::vector<std::string> mpich_words(const Request& request, const std::vector<Host>& hosts, int ranks) {
  std::vector<std::string> words{request.mpirun, "-n", std::to_string(ranks)};
  if (!hosts.empty()) words.insert(words.end(), {"-hosts", list_of(hosts)});
  return words;
}

void require_mpirun(const Request& request, const LaunchContext& context) {
  if (context.mpi) return;
  if (!context.mpirun_version_line.empty()) {
    throw Error(
        Code::unimplemented,
        fmt::format("{} --version: found \"{}\", expected Open MPI or MPICH; pass another with --mpirun FILE",
                    request.mpirun, context.mpirun_version_line));
  }
  throw Error(
      Code::not_found,
      fmt::format(
          "{} not found; load the MPI that Capstan was built with (module load openmpi), pass --mpirun "
          "FILE, or run all roles in one process with --launcher local",
          request.mpirun));
}

Plan local_plan(const Request& request) {
  const Roles& roles = request.roles;
  if (roles.ps || roles.workers || roles.spares > 0 || roles.evaluator || !request.hosts.empty()) {
    throw refused(
        "--launcher local runs all roles in one process; omit --ps, --workers, --spares, --evaluator and "
        "--hosts, and unset CAPSTAN_PS, CAPSTAN_WORKERS, ...");
  }
  // Overrides the launcher that the variables of a batch script suggest.
  return {request.program, {{"CAPSTAN_BOOTSTRAP", "alone"}}, 1};
}

bool is_plain(char c) {
  const std::string_view punctuation = "_@%+=:,./-";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         punctuation.find(c) != std::string_view::npos;
}

std::string quoted(const std::string& word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string Plan::text() const {
  std::string line;
  for (const auto& [name, value] : variables) line += name + "=" + quoted(value) + " ";
  for (const std::string& word : command) line += quoted(word) + " ";
  line.pop_back();
  return line;
}

Plan make_plan(const Request& request, const LaunchContext& context, const std::vector<Host>& hosts) {
  if (request.launcher == Launcher::local) return local_plan(request);
  if (context.allocation && !hosts.empty()) {
    throw refused(fmt::format("--hosts: not supported in Slurm job {}, which has its own hosts; omit it",
                              context.allocation->job_id));
  }
  const Launcher launcher = choose(request, context);
  if (launcher == Launcher::mpirun) require_mpirun(request, context);
  const Counts counts = count_ranks(capacity_of(request, context, hosts), request.roles, context);
  Plan plan{{}, {}, counts.ranks};
  if (counts.ps) plan.variables.emplace_back("CAPSTAN_PS", std::to_string(*counts.ps));
  if (counts.workers) plan.variables.emplace_back("CAPSTAN_WORKERS", std::to_string(*counts.workers));
  if (request.roles.spares > 0)
    plan.variables.emplace_back("CAPSTAN_SPARES", std::to_string(request.roles.spares));
  if (request.roles.evaluator) plan.variables.emplace_back("CAPSTAN_EVALUATOR", "true");
  plan.command = launcher == Launcher::srun ? srun_words(context, counts)
                 : context.mpi->kind == MpiKind::mpich
                     ? mpich_words(request, hosts, counts.ranks)
                     : open_mpi_words(request, context, hosts, plan.variables, counts.ranks);
  plan.command.insert(plan.command.end(), request.program.begin(), request.program.end());
  return plan;
}

}  // namespace capstan::launch::run
