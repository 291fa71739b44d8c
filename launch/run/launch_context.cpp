// launch_context.cpp -- queries mpirun and srun, and parses the variables of Slurm.
#include "launch/run/launch_context.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstring>
#include <numeric>
#include <sstream>

#include "base/command_output.hpp"
#include "capstan/error.hpp"
#include "cluster/resolvers/slurm_lists.hpp"

namespace capstan::launch::run {
namespace {

/// Time limit of `mpirun --version`, which may take a second on a slow file system.
constexpr std::chrono::seconds kVersionTimeout{20};

int cores_here() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return std::max(1, CPU_COUNT(&allowed));
  return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

std::string value_in(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

int number_in(const Environment& environment, const std::string& name, int initial) {
  const std::string text = value_in(environment, name);
  if (text.empty()) return initial;
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number > 0) return number;
  throw Error(Code::invalid_argument,
              fmt::format("{}=\"{}\": expected an integer of at least 1", name, text));
}

/// Adds the tasks and hosts of one component; `suffix` is "" or "_HET_GROUP_1".
void add_component(Allocation& job, const Environment& environment, const std::string& suffix) {
  const std::string variable = "SLURM_TASKS_PER_NODE" + suffix;
  const std::string lists = value_in(environment, variable);
  std::vector<int> tasks;
  if (!lists.empty()) tasks = cluster::expand_counts(variable, lists);
  const int total = std::accumulate(tasks.begin(), tasks.end(), 0);
  const int wanted = number_in(environment, "SLURM_NTASKS" + suffix, total);
  if (wanted < 1) {
    throw Error(
        Code::invalid_argument,
        fmt::format("Slurm job {}: neither SLURM_NTASKS{} nor {} is set, expected the number of ranks; pass "
                    "--ntasks=N to sbatch or salloc",
                    job.job_id, suffix, variable));
  }
  job.tasks += wanted;
  job.hosts += std::max<int>(1, static_cast<int>(tasks.size()));
  const int most = tasks.empty() ? wanted : *std::max_element(tasks.begin(), tasks.end());
  job.max_tasks_per_host = std::max(job.max_tasks_per_host, most);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// Plugins in the output of `srun --mpi=list`: "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix" and a line
/// "specific pmix plugin versions available: pmix_v4".
std::vector<std::string> pmi_in(const std::string& text) {
  std::vector<std::string> names;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    while (!word.empty() && (word.back() == ',' || word.back() == ':')) word.pop_back();
    if (word == "none" || word == "cray_shasta" || word.starts_with("pmi")) names.push_back(word);
  }
  return names;
}

bool is_forwarded(const std::string& name) {
  return name.starts_with("CAPSTAN_") || name.starts_with("UCX_") || name == "LD_LIBRARY_PATH" ||
         name == "OMP_NUM_THREADS" || name == "OPENBLAS_NUM_THREADS";
}

}  // namespace

std::optional<Mpi> mpi_of(std::string_view text) {
  const auto behind = [text](std::string_view mark) -> std::string {
    const auto at = text.find(mark);
    if (at == std::string_view::npos) return "";
    std::istringstream rest{std::string(text.substr(at + mark.size()))};
    std::string version;
    rest >> version;
    return version;
  };
  for (const std::string_view name : {"(Open MPI)", "(OpenRTE)"}) {
    if (text.find(name) != std::string_view::npos) return Mpi{MpiKind::open_mpi, behind(name)};
  }
  if (text.find("HYDRA") != std::string_view::npos) return Mpi{MpiKind::mpich, behind("Version:")};
  if (text.find("Intel(R) MPI") != std::string_view::npos) return Mpi{MpiKind::mpich, behind("Version")};
  return std::nullopt;
}

std::optional<Allocation> allocation_of(const Environment& environment) {
  Allocation job;
  job.job_id = value_in(environment, "SLURM_JOB_ID");
  if (job.job_id.empty()) return std::nullopt;
  job.hosts = 0;
  job.components = number_in(environment, "SLURM_HET_SIZE", 1);
  job.cpus_per_task = number_in(environment, "SLURM_CPUS_PER_TASK", 0);
  if (job.components == 1) {
    add_component(job, environment, "");
    return job;
  }
  job.cpus_per_task = 0;  // differs between the components
  for (int i = 0; i < job.components; ++i) add_component(job, environment, fmt::format("_HET_GROUP_{}", i));
  return job;
}

LaunchContext detect_launch_context(const std::string& mpirun, const Environment& environment) {
  LaunchContext context;
  context.cores = cores_here();
  context.root = geteuid() == 0;
  context.allocation = allocation_of(environment);
  if (const auto version = command_output({mpirun, "--version"}, kVersionTimeout, StderrMode::captured)) {
    context.mpi = mpi_of(version->text);
    if (!context.mpi) context.mpirun_version_line = first_line(version->text);
  }
  if (context.allocation) {
    if (const auto list = command_output({"srun", "--mpi=list"}, kVersionTimeout, StderrMode::captured)) {
      context.srun = true;
      context.pmi = pmi_in(list->text);
    }
  }
  for (const auto& [name, value] : environment) {
    if (is_forwarded(name)) context.forwarded_variables.push_back(name);
  }
  return context;
}

Environment environment_of(const char* const* variables) {
  Environment environment;
  for (; *variables != nullptr; ++variables) {
    const char* equals = std::strchr(*variables, '=');
    if (equals != nullptr) environment.emplace(std::string(*variables, equals), std::string(equals + 1));
  }
  return environment;
}

}  // namespace capstan::launch::run
