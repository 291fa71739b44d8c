// checks.cpp -- the table of checks with their scopes and time limits.
#include "launch/doctor/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/settings.hpp"
#include "capstan/error.hpp"
#include "launch/doctor/adapters.hpp"
#include "launch/doctor/checkpoint_directory.hpp"
#include "launch/doctor/gpu.hpp"
#include "launch/doctor/host_names.hpp"
#include "launch/doctor/launchers.hpp"
#include "launch/doctor/limits.hpp"
#include "launch/doctor/time_left.hpp"
#include "launch/doctor/time_limit.hpp"
#include "launch/doctor/ucx_probe.hpp"
#include "launch/doctor/versions.hpp"
#include "launch/launcher_rank.hpp"

namespace capstan::launch::doctor {
namespace {

using std::chrono::seconds;

/// Most checks take milliseconds; the limit is longer so that they also pass on a busy host.
constexpr seconds kDefaultTimeLimit{15};

const std::array kChecks{
    Check{"mpi", Scope::process, "MPI versions at build time and run time", kDefaultTimeLimit, check_mpi},
    Check{"ucx", Scope::process, "UCX versions at build time and run time; thread mode", kDefaultTimeLimit,
          check_ucx},
    Check{"hdf5", Scope::process, "HDF5 versions at build time and run time", kDefaultTimeLimit, check_hdf5},
    Check{"hwloc", Scope::process, "hwloc versions at build time and run time", kDefaultTimeLimit,
          check_hwloc},
    Check{"settings", Scope::process, "CAPSTAN_* variables are known and well-formed", kDefaultTimeLimit,
          check_settings},
    Check{"ranks", Scope::collective, "MPI sees as many ranks as the launcher started"},
    Check{"binary", Scope::collective, "every rank runs the same program"},
    Check{"memlock", Scope::process, "limit of locked memory", kDefaultTimeLimit, check_memlock},
    Check{"open-files", Scope::process, "limit of open files", kDefaultTimeLimit, check_open_files},
    Check{"dev-shm", Scope::host, "size of /dev/shm", kDefaultTimeLimit, check_shared_memory},
    Check{"sysv", Scope::host, "limits of SysV shared memory", kDefaultTimeLimit, check_sysv},
    Check{"huge-pages", Scope::host, "transparent and reserved huge pages", kDefaultTimeLimit,
          check_huge_pages},
    Check{"ptrace", Scope::host, "ptrace_scope, which CMA needs at 0", kDefaultTimeLimit, check_ptrace},
    Check{"ipc", Scope::collective, "ranks of one host share one IPC namespace"},
    Check{"binding", Scope::collective,
          "CPU binding of the ranks: bound to one core, shared cores, too few cores"},
    Check{"ucx-variables", Scope::process, "UCX_* variables that UCX does not know or cannot read",
          seconds(40), check_ucx_variables},
    Check{"ucx-devices", Scope::process, "requested UCX devices and transports that do not exist",
          seconds(40), check_ucx_devices},
    Check{"adapters", Scope::host, "InfiniBand and RoCE ports: state, rate", kDefaultTimeLimit,
          check_adapters},
    Check{"gpu", Scope::host, "GPUs, driver, NCCL", seconds(30), check_gpus},
    Check{"host-name", Scope::host, "the name of the host has an address", seconds(10), check_host_name},
    Check{"ports", Scope::collective, "hosts resolve each other by name and connect over TCP"},
    Check{"transports", Scope::collective,
          "how UCX connects ranks, and whether memory on one host can be mapped"},
    Check{"rma", Scope::collective, "hardware RMA: a put completes while the target makes no progress"},
    Check{"clock", Scope::collective, "clock differences between hosts"},
    Check{"checkpoint-dir", Scope::host, "file system, space, write speed and locks of --checkpoint-dir",
          seconds(30), check_checkpoint_directory},
    Check{"shared-dir", Scope::collective, "all hosts see the same --checkpoint-dir"},
    Check{"time-left", Scope::job, "time left in the Slurm job", seconds(15), check_time_left},
    Check{"speed", Scope::collective,
          "latency and bandwidth between pairs of ranks, with the expected values"},
};

/// Rank within the host, from the variables of the launchers, since MPI is not initialized; 0 if none is set.
int rank_on_host() {
  for (const char* variable :
       {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}) {
    if (const char* text = std::getenv(variable); text != nullptr && *text != '\0') return std::atoi(text);
  }
  return 0;
}

bool runs_here(const Check& check) {
  switch (check.scope) {
    case Scope::process:
      return true;
    case Scope::host:
      return rank_on_host() == 0;
    case Scope::job:
      return launcher_rank() == 0;
    case Scope::collective:
      break;
  }
  return false;
}

}  // namespace

std::span<const Check> checks() { return kChecks; }

bool is_selected(std::string_view check, const std::vector<std::string>& only) {
  return only.empty() || std::find(only.begin(), only.end(), check) != only.end();
}

void require_checks(const std::vector<std::string>& only) {
  std::vector<std::string> names;
  for (const Check& check : checks()) names.emplace_back(check.name);
  for (const std::string& name : only) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string nearest = nearest_name(name, names);
    throw Error(Code::invalid_argument,
                fmt::format("--only {}: there is no such check{}; `capstan doctor --list` lists them", name,
                            nearest.empty() ? "" : fmt::format(", did you mean {}?", nearest)));
  }
}

std::string list_text() {
  std::string text;
  for (const Check& check : checks()) text += fmt::format("{:<15}{}\n", check.name, check.summary);
  return text;
}

Finding run_check(const Check& check, const Request& request) {
  Finding finding;
  try {
    const auto found =
        run_with_time_limit<Finding>(check.time_limit, [run = check.run, request] { return run(request); });
    finding = found ? *found
                    : fail(fmt::format("no result within {} s", check.time_limit.count()),
                           "find the hanging file system, driver or name server of this host");
  } catch (const std::exception& error) {
    finding = fail(error.what(), "see docs/errors.md");
  }
  finding.check = check.name;
  return finding;
}

std::vector<Finding> run_local_checks(const Request& request) {
  std::vector<Finding> findings;
  for (const Check& check : checks()) {
    if (check.run && is_selected(check.name, request.only) && runs_here(check))
      findings.push_back(run_check(check, request));
  }
  return findings;
}

}  // namespace capstan::launch::doctor
