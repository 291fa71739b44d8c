// run.hpp -- runs `capstan plan`.
#pragma once

#include "launch/plan/request.hpp"

namespace capstan::launch::plan {

/// Prints the plan and returns the exit code. Throws Error: not_found or invalid_argument for the file of
/// constants, invalid_argument for a job that is not possible.
int run(const Request& request);

}  // namespace capstan::launch::plan
