// doctor.hpp -- `capstan doctor`: checks a machine, or all hosts of a job, for anything that would make a run
// incorrect or slow.
#pragma once

#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

/// Runs on every rank; rank 0 prints the report. Ends the process by _exit with 0 if no check failed, else 3:
/// timed-out checks still run, and exit() would destroy objects that they use. Throws Error(invalid_argument)
/// for an unknown check.
[[noreturn]] void run(const Request& request);

}  // namespace capstan::launch::doctor
