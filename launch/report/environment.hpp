// environment.hpp -- the variables that affect a run, without secrets.
#pragma once

#include <string>

#include "launch/report/anonymizer.hpp"

namespace capstan::launch::report {

/// One line "NAME=VALUE" for each variable of Capstan, MPI, UCX, Slurm, CUDA, OpenMP and the dynamic linker,
/// sorted and anonymized; a last line counts the other variables. `environment` has the format of `environ`.
std::string environment_text(const char* const* environment, Anonymizer& anonymizer);

}  // namespace capstan::launch::report
