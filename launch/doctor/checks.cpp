// checks.cpp -- what is checked, by whom, and for how long.
#include "launch/doctor/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/settings.hpp"
#include "capstan/error.hpp"
#include "launch/doctor/adapters.hpp"
#include "launch/doctor/checkpoint_folder.hpp"
#include "launch/doctor/gpu.hpp"
#include "launch/doctor/host_names.hpp"
#include "launch/doctor/launchers.hpp"
#include "launch/doctor/limits.hpp"
#include "launch/doctor/time_left.hpp"
#include "launch/doctor/time_limit.hpp"
#include "launch/doctor/ucx_look.hpp"
#include "launch/doctor/versions.hpp"
#include "launch/launcher_rank.hpp"

namespace capstan::launch::doctor {
namespace {

using std::chrono::seconds;

/// For what takes milliseconds where nothing hangs: a busy host is no hang.
constexpr seconds kLook{15};

const std::array kChecks{
    Check{"mpi", Scope::process, "MPI: built against and running with", kLook, check_mpi},
    Check{"ucx", Scope::process, "UCX: built against and running with; its thread mode", kLook, check_ucx},
    Check{"hdf5", Scope::process, "HDF5: built against and running with", kLook, check_hdf5},
    Check{"hwloc", Scope::process, "hwloc: built against and running with", kLook, check_hwloc},
    Check{"settings", Scope::process, "CAPSTAN_* variables are known and well-formed", kLook, check_settings},
    Check{"ranks", Scope::together, "MPI sees as many ranks as the launcher started"},
    Check{"binary", Scope::together, "every rank runs the same program"},
    Check{"memlock", Scope::process, "how much memory may be locked", kLook, check_memlock},
    Check{"open-files", Scope::process, "how many files may be open", kLook, check_open_files},
    Check{"dev-shm", Scope::host, "size of /dev/shm", kLook, check_shared_memory},
    Check{"sysv", Scope::host, "limits of SysV shared memory", kLook, check_sysv},
    Check{"huge-pages", Scope::host, "transparent and reserved huge pages", kLook, check_huge_pages},
    Check{"ptrace", Scope::host, "ptrace_scope, which CMA needs at 0", kLook, check_ptrace},
    Check{"ipc", Scope::together, "ranks of one host share one IPC namespace"},
    Check{"binding", Scope::together, "cores that ranks may use: bound to one, shared, fewer than ranks"},
    Check{"ucx-variables", Scope::process, "UCX_* variables that UCX does not know or cannot read",
          seconds(40), check_ucx_variables},
    Check{"ucx-devices", Scope::process, "devices and transports that are asked for and do not exist",
          seconds(40), check_ucx_devices},
    Check{"adapters", Scope::host, "InfiniBand and RoCE ports: state, rate", kLook, check_adapters},
    Check{"gpu", Scope::host, "GPUs, their driver, NCCL", seconds(30), check_gpus},
    Check{"host-name", Scope::host, "the host's own name has an address", seconds(10), check_host_name},
    Check{"ports", Scope::together, "hosts find each other by name and reach a TCP port"},
    Check{"transports", Scope::together,
          "how UCX connects ranks, and whether memory of one host can be mapped"},
    Check{"rma", Scope::together,
          "whether a put ends while the other side makes no progress, or UCX emulates it"},
    Check{"clock", Scope::together, "clocks of the hosts agree"},
    Check{"checkpoint-dir", Scope::host, "file system, space, write speed and locks of --checkpoint-dir",
          seconds(30), check_checkpoint_folder},
    Check{"shared-dir", Scope::together, "all hosts see the same folder of --checkpoint-dir"},
    Check{"time-left", Scope::job, "time left of a job of Slurm", seconds(15), check_time_left},
    Check{"speed", Scope::together, "latency and bandwidth of pairs of ranks, beside what is to be expected"},
};

/// Of a host's ranks, by the launchers' variables; MPI is not up yet. 0 where none says.
int rank_on_host() {
  for (const char* variable :
       {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID"}) {
    if (const char* text = std::getenv(variable); text != nullptr && *text != '\0') return std::atoi(text);
  }
  return 0;
}

bool is_mine(const Check& check) {
  switch (check.scope) {
    case Scope::process:
      return true;
    case Scope::host:
      return rank_on_host() == 0;
    case Scope::job:
      return launcher_rank() == 0;
    case Scope::together:
      break;
  }
  return false;
}

}  // namespace

std::span<const Check> checks() { return kChecks; }

bool wanted(std::string_view check, const std::vector<std::string>& only) {
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
  for (const Check& check : checks()) text += fmt::format("{:<15}{}\n", check.name, check.asks);
  return text;
}

Finding run_check(const Check& check, const Request& request) {
  Finding finding;
  try {
    const auto found = within<Finding>(check.time_limit, [run = check.run, request] { return run(request); });
    finding = found ? *found
                    : fail(fmt::format("no answer within {} s, so it was given up", check.time_limit.count()),
                           "what it looks at hangs on this host: a file system, a driver or a name server");
  } catch (const std::exception& error) {
    finding = fail(error.what(), "docs/errors.md");
  }
  finding.check = check.name;
  return finding;
}

std::vector<Finding> run_local_checks(const Request& request) {
  std::vector<Finding> findings;
  for (const Check& check : checks()) {
    if (check.run && wanted(check.name, request.only) && is_mine(check))
      findings.push_back(run_check(check, request));
  }
  return findings;
}

}  // namespace capstan::launch::doctor
