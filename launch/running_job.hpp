// running_job.hpp -- `capstan status` and `capstan join`, which find a running job by its run directory.
#pragma once

#include <string>

#include "cluster/bootstrap/run_directory.hpp"

namespace capstan::launch {

/// Reads the file that the coordinator left in `run_dir`. Throws Error(not_found) if no job runs there.
cluster::RunFile run_file_of(const std::string& run_dir);

/// Prints the coordinator's status report. Throws Error: not_found if no job runs there, unavailable or
/// deadline_exceeded if the coordinator does not answer within 5 s.
int show_status(const std::string& run_dir);

/// Replaces this process (execv) with the program of the job, with the same arguments and working directory.
/// Sets the job's CAPSTAN_* and UCX_* variables unless this process has them, and CAPSTAN_JOIN and
/// cluster::kJobRunsVariable. Throws Error.
[[noreturn]] void join_job(const std::string& run_dir);

}  // namespace capstan::launch
