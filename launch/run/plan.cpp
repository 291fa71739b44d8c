// plan.cpp -- which launcher, how many ranks, which flags.
#include "launch/run/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "capstan/error.hpp"

namespace capstan::launch::run {
namespace {

Error refused(const std::string& message) { return Error(Code::invalid_argument, message); }

/// Where ranks can be put. No slots: on this host, as many as there are.
struct Room {
  std::optional<int> slots = {};
  int hosts = 1;
  std::string told_by = {};  ///< "--hosts FILE", "Slurm job 7"
  std::string more = {};     ///< how to get more of them
};

Room room_of(const Request& request, const Place& place, const std::vector<Host>& hosts) {
  if (!hosts.empty()) {
    int slots = 0;
    for (const Host& host : hosts) slots += host.slots;
    return {slots, static_cast<int>(hosts.size()), "--hosts " + request.hosts, "give its hosts more slots"};
  }
  if (place.allocation) {
    return {place.allocation->tasks, place.allocation->hosts, "Slurm job " + place.allocation->job,
            "ask sbatch or salloc for more --ntasks"};
  }
  return {};
}

struct Counts {
  std::optional<int> ps = {};  ///< not set: by the rule of the setting, in the program
  std::optional<int> workers = {};
  int ranks = 0;
};

/// All but the workers.
int others(const Roles& roles, int ps, int hosts) {
  const int all_ps = ps * (roles.on_each_host ? hosts : 1);
  return 1 + all_ps * (roles.replicas ? 2 : 1) + roles.spares + (roles.evaluator ? 1 : 0);
}

/// One a host, as the setting's rule has it, and not more than one for three workers.
int ps_for(const Roles& roles, int workers, int hosts) {
  return roles.on_each_host ? 1 : std::clamp(hosts, 1, std::max(1, (workers + 1) / 3));
}

Counts counts_without_slots(const Roles& roles, const Place& place) {
  if (!roles.told_elsewhere.empty()) {
    throw refused(fmt::format(
        "{} is set, but nothing says how many ranks there are: give --ps and --workers in its place, or "
        "call mpirun yourself",
        roles.told_elsewhere));
  }
  Counts counts;
  counts.workers = roles.workers.value_or(place.cores);
  counts.ps = roles.ps.value_or(1);
  counts.ranks = others(roles, *counts.ps, 1) + *counts.workers;
  return counts;
}

/// All slots become ranks, unless the workers are counted.
Counts counts_in(const Room& room, const Roles& roles) {
  Counts counts{roles.ps, roles.workers, *room.slots};
  if (!roles.workers) return counts;
  if (!counts.ps) counts.ps = ps_for(roles, *roles.workers, room.hosts);
  counts.ranks = others(roles, *counts.ps, room.hosts) + *roles.workers;
  return counts;
}

void require_room(const Room& room, const Counts& counts, const Roles& roles) {
  const int fewest = others(roles, counts.ps.value_or(1), room.hosts) + 1;
  if (*room.slots < fewest) {
    throw refused(
        fmt::format("{} has {} slot{}, and {} ranks are the fewest here: {}{}", room.told_by, *room.slots,
                    *room.slots == 1 ? "" : "s", fewest, room.more,
                    *room.slots == 1 ? ", or run all roles in one process with --launcher local" : ""));
  }
  if (counts.ranks > *room.slots) {
    throw refused(fmt::format("{} ps and {} workers make {} ranks, and {} has {} slots: {}, or ask for fewer",
                              counts.ps.value_or(1), counts.workers.value_or(1), counts.ranks, room.told_by,
                              *room.slots, room.more));
  }
}

Counts count_ranks(const Room& room, const Roles& roles, const Place& place) {
  if (!room.slots) return counts_without_slots(roles, place);
  const Counts counts = counts_in(room, roles);
  require_room(room, counts, roles);
  return counts;
}

Launcher choose(const Request& request, const Place& place) {
  const bool het = place.allocation && place.allocation->components > 1;
  if (request.launcher == Launcher::srun && !place.allocation) {
    throw Error(Code::failed_precondition,
                "--launcher srun: this is no Slurm job; call capstan run in a batch script or under salloc");
  }
  if (request.launcher == Launcher::mpirun && het) {
    throw refused("--launcher mpirun: no mpirun spans the components of a heterogeneous Slurm job; use srun");
  }
  if (request.launcher == Launcher::srun && !request.hosts.empty()) {
    throw refused("--hosts is for mpirun: srun has the hosts of its job");
  }
  if (request.launcher != Launcher::automatic) return request.launcher;
  if (het || (place.allocation && !place.mpi && place.srun)) return Launcher::srun;
  return Launcher::mpirun;
}

/// What srun says its MPI is. MPICH asks for pmi2, and Open MPI for PMIx.
std::string pmi_for(const Place& place) {
  const bool mpich = place.mpi && place.mpi->kind == MpiKind::mpich;
  const auto offers = [&place](std::string_view name) {
    return std::find(place.pmi.begin(), place.pmi.end(), name) != place.pmi.end();
  };
  const std::string_view wanted = mpich && offers("pmi2") ? "pmi2" : "pmix";
  if (!place.pmi.empty() && !offers(wanted)) {
    throw Error(Code::failed_precondition,
                fmt::format("this Slurm's srun --mpi=list offers {}, and no {}: ask the site for it, or use "
                            "--launcher mpirun",
                            fmt::join(place.pmi, ", "), wanted));
  }
  return std::string(wanted);
}

std::vector<std::string> srun_words(const Place& place, const Counts& counts) {
  const Allocation& job = *place.allocation;
  // A rank that ends with an error, or a node that is lost, is Capstan's to deal with.
  std::vector<std::string> words{"srun", "--mpi=" + pmi_for(place), "--kill-on-bad-exit=0", "--no-kill",
                                 "--export=ALL"};
  if (job.components > 1) {
    if (counts.ranks != job.tasks) {
      throw refused(
          fmt::format("heterogeneous Slurm job {} has {} tasks, and all of them are ranks; {} were asked "
                      "for",
                      job.job, job.tasks, counts.ranks));
    }
    words.push_back(fmt::format("--het-group=0-{}", job.components - 1));
    return words;
  }
  words.push_back(fmt::format("--ntasks={}", counts.ranks));
  // Which srun does not take from sbatch since 22.05.
  if (job.cpus_per_task > 0) words.push_back(fmt::format("--cpus-per-task={}", job.cpus_per_task));
  return words;
}

std::string list_of(const std::vector<Host>& hosts) {
  std::vector<std::string> names;
  for (const Host& host : hosts) names.push_back(fmt::format("{}:{}", host.name, host.slots));
  return fmt::format("{}", fmt::join(names, ","));
}

int most_on_a_host(const Place& place, const std::vector<Host>& hosts, int ranks) {
  int most = place.allocation ? place.allocation->most_tasks_on_a_host : ranks;
  if (!hosts.empty()) most = 0;
  for (const Host& host : hosts) most = std::max(most, host.slots);
  return std::min(most, ranks);
}

std::vector<std::string> open_mpi_words(const Request& request, const Place& place,
                                        const std::vector<Host>& hosts,
                                        const std::vector<std::pair<std::string, std::string>>& variables,
                                        int ranks) {
  std::vector<std::string> words{request.mpirun};
  if (place.root) words.emplace_back("--allow-run-as-root");
  words.insert(words.end(), {"-n", std::to_string(ranks)});
  const bool alone = hosts.empty() && !place.allocation;
  if (!hosts.empty()) words.insert(words.end(), {"-H", list_of(hosts)});
  // Its slots are cores without their hardware threads; and it would bind ranks that are more than cores,
  // each with all its threads, to the same ones.
  if (alone || most_on_a_host(place, hosts, ranks) > place.cores) {
    words.insert(words.end(), {"--map-by", "slot:OVERSUBSCRIBE", "--bind-to", "none"});
  }
  if (alone) return words;  // ranks inherit the variables
  std::vector<std::string> names = place.to_forward;
  for (const auto& [name, value] : variables) names.push_back(name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) words.insert(words.end(), {"-x", name});
  return words;
}

/// Hydra hands all variables on, binds nothing, and runs as anybody.
std::vector<std::string> mpich_words(const Request& request, const std::vector<Host>& hosts, int ranks) {
  std::vector<std::string> words{request.mpirun, "-n", std::to_string(ranks)};
  if (!hosts.empty()) words.insert(words.end(), {"-hosts", list_of(hosts)});
  return words;
}

void require_mpirun(const Request& request, const Place& place) {
  if (place.mpi) return;
  if (!place.mpirun_says.empty()) {
    throw Error(
        Code::unimplemented,
        fmt::format("{} --version says \"{}\": expected Open MPI or MPICH; give another with --mpirun FILE",
                    request.mpirun, place.mpirun_says));
  }
  throw Error(
      Code::not_found,
      fmt::format("there is no {} here: load the MPI that this Capstan was built with (module load "
                  "openmpi), give it with --mpirun FILE, or run all roles in one process with --launcher "
                  "local",
                  request.mpirun));
}

Plan local_plan(const Request& request) {
  const Roles& roles = request.roles;
  if (roles.ps || roles.workers || roles.spares > 0 || roles.evaluator || !request.hosts.empty()) {
    throw refused(
        "--launcher local is one process with every role in it: leave --ps, --workers, --spares, --evaluator "
        "and "
        "--hosts out (and CAPSTAN_PS, CAPSTAN_WORKERS, ...)");
  }
  // Whatever a batch script's variables look like.
  return {request.program, {{"CAPSTAN_BOOTSTRAP", "alone"}}, 1};
}

bool is_plain(char c) {
  const std::string_view others = "_@%+=:,./-";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         others.find(c) != std::string_view::npos;
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

Plan make_plan(const Request& request, const Place& place, const std::vector<Host>& hosts) {
  if (request.launcher == Launcher::local) return local_plan(request);
  if (place.allocation && !hosts.empty()) {
    throw refused(fmt::format("--hosts: this is Slurm job {}, which has its own hosts; leave it out",
                              place.allocation->job));
  }
  const Launcher launcher = choose(request, place);
  if (launcher == Launcher::mpirun) require_mpirun(request, place);
  const Counts counts = count_ranks(room_of(request, place, hosts), request.roles, place);
  Plan plan{{}, {}, counts.ranks};
  if (counts.ps) plan.variables.emplace_back("CAPSTAN_PS", std::to_string(*counts.ps));
  if (counts.workers) plan.variables.emplace_back("CAPSTAN_WORKERS", std::to_string(*counts.workers));
  if (request.roles.spares > 0)
    plan.variables.emplace_back("CAPSTAN_SPARES", std::to_string(request.roles.spares));
  if (request.roles.evaluator) plan.variables.emplace_back("CAPSTAN_EVALUATOR", "true");
  plan.command = launcher == Launcher::srun ? srun_words(place, counts)
                 : place.mpi->kind == MpiKind::mpich
                     ? mpich_words(request, hosts, counts.ranks)
                     : open_mpi_words(request, place, hosts, plan.variables, counts.ranks);
  plan.command.insert(plan.command.end(), request.program.begin(), request.program.end());
  return plan;
}

}  // namespace capstan::launch::run
