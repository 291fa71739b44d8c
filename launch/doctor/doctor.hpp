// doctor.hpp -- `capstan doctor`: says of a machine, or of all hosts of a job, what would keep a run from
// being right and fast.
#pragma once

#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

/// Runs on every rank; rank 0 prints. Ends the process, with 0 when nothing failed and 3 otherwise: checks
/// that were given up are still running, and the end of the program would wait for them or pull memory from
/// under them. Throws Error(invalid_argument) for a check that does not exist.
[[noreturn]] void run(const Request& request);

}  // namespace capstan::launch::doctor
