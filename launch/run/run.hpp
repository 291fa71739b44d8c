// run.hpp -- `capstan run`: starts a job on one host, on several hosts or in Slurm.
#pragma once

#include "launch/run/request.hpp"

namespace capstan::launch::run {

/// Prints the command, runs it and reports how it ended. Returns the exit code of the job. Throws Error.
int run(const Request& request);

}  // namespace capstan::launch::run
