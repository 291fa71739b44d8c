// launcher_rank.cpp -- reads the environment variables of the launchers, innermost launcher first.
#include "launch/launcher_rank.hpp"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace capstan::launch {

int launcher_rank() {
  // SLURM_PROCID is last: under `mpirun` in a Slurm job it is the rank of the shell that started mpirun.
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    const char* text = std::getenv(variable);
    if (text == nullptr) continue;
    const std::string_view digits = text;
    int rank = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), rank);
    if (error == std::errc() && end == digits.end() && rank >= 0) return rank;
  }
  return 0;
}

}  // namespace capstan::launch
