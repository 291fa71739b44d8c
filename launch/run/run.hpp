// run.hpp -- `capstan run`: one command that starts a job, wherever it is.
#pragma once

#include "launch/run/request.hpp"

namespace capstan::launch::run {

/// Prints the command, runs it and says how it ended. Returns the job's exit code. Throws Error.
int run(const Request& request);

}  // namespace capstan::launch::run
