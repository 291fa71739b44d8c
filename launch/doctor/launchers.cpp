// launchers.cpp -- reads the variables of Open MPI, Hydra, MVAPICH and Slurm.
#include "launch/doctor/launchers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/settings.hpp"
#include "capstan/error.hpp"

namespace capstan::launch::doctor {

std::optional<LauncherSize> launcher_size() {
  for (const char* variable :
       {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* text = std::getenv(variable);
    if (text == nullptr) continue;
    const std::string_view digits = text;
    int ranks = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), ranks);
    if (error == std::errc() && end == digits.end() && ranks > 0) return LauncherSize{variable, ranks};
  }
  return std::nullopt;
}

Finding judge_ranks(const std::optional<LauncherSize>& launched, std::optional<int> mpi_ranks) {
  if (!launched)
    return skip(
        "started without a launcher; run under mpirun or srun to check that all ranks share one world");
  const std::string observed = fmt::format("the launcher started {} {} ({}), MPI sees {}", launched->ranks,
                                           launched->ranks == 1 ? "rank" : "ranks", launched->variable,
                                           mpi_ranks ? fmt::format("{}", *mpi_ranks) : "none");
  if (mpi_ranks.value_or(1) == launched->ranks) return pass(observed);
  if (mpi_ranks.value_or(1) == 1) {
    return fail(observed + ": each rank is a job of its own, and all write to the same files",
                "use the mpirun of the MPI that Capstan is linked with (capstan --version); in Slurm srun "
                "--mpi=pmix, if srun --mpi=list has it");
  }
  return fail(observed,
              "use one launcher: no mpirun inside srun, and no leftover variables of another launcher");
}

Finding check_settings(const Request&) {
  try {
    Settings settings;
    settings.load_environment(environ);
    if (const char* file = std::getenv("CAPSTAN_CONFIG"); file != nullptr && *file != '\0')
      settings.load_file(file, "CAPSTAN_CONFIG");
  } catch (const Error& error) {
    return fail(error.what(), "correct or unset it; `capstan settings` lists all");
  }
  return pass("every CAPSTAN_* variable is known and well-formed");
}

}  // namespace capstan::launch::doctor
