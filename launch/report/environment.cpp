// environment.cpp -- selects variables by name, since other variables may have private content.
#include "launch/report/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "launch/report/patterns.hpp"

namespace capstan::launch::report {
namespace {

bool affects_runs(std::string_view name) {
  constexpr std::array<std::string_view, 24> kPrefixes{
      "CAPSTAN_", "UCX_", "OMPI_",  "PMIX_", "PMI_",   "PRTE_",     "MPICH_", "MPIR_",
      "HYDRA_",   "MV2_", "I_MPI_", "FI_",   "SLURM_", "HDF5_",     "CUDA_",  "NCCL_",
      "NVIDIA_",  "OMP_", "GOMP_",  "KMP_",  "MALLOC", "OPENBLAS_", "MKL_",   "LD_"};
  constexpr std::array<std::string_view, 6> kNames{"PATH",      "PYTHONPATH", "LOADEDMODULES",
                                                   "TF_CONFIG", "LANG",       "LC_ALL"};
  // Numbers of the user and the group, and the name of the group.
  constexpr std::array<std::string_view, 3> kPrivate{"SLURM_JOB_UID", "SLURM_JOB_GID", "SLURM_JOB_GROUP"};
  const auto is = [&](std::string_view other) { return name == other; };
  const auto starts = [&](std::string_view prefix) { return name.starts_with(prefix); };
  return std::none_of(kPrivate.begin(), kPrivate.end(), is) &&
         (std::any_of(kNames.begin(), kNames.end(), is) ||
          std::any_of(kPrefixes.begin(), kPrefixes.end(), starts));
}

}  // namespace

std::string environment_text(const char* const* environment, Anonymizer& anonymizer) {
  std::vector<std::string_view> entries;
  std::size_t others = 0;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    if (affects_runs(entry.substr(0, entry.find('=')))) {
      entries.push_back(entry);
    } else {
      ++others;
    }
  }
  std::sort(entries.begin(), entries.end());
  std::string text;
  for (const std::string_view entry : entries) {
    const auto equals = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, equals);
    const std::string_view value = entry.substr(std::min(equals + 1, entry.size()));
    const bool is_secret = is_secret_name(name) && !value.empty();
    text +=
        fmt::format("{}={}\n", anonymizer.anonymize(name),
                    is_secret ? anonymizer.replace(Kind::secret, value) : anonymizer.anonymize_value(value));
  }
  return text + fmt::format("({} other variables are left out)\n", others);
}

}  // namespace capstan::launch::report
