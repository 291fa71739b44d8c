// running_job.hpp -- `capstan status` and `capstan join`: a job that runs, by its run directory.
#pragma once

#include <string>

#include "cluster/bootstrap/run_directory.hpp"

namespace capstan::launch {

/// Its coordinator's file. Throws Error: not_found when no job runs there.
cluster::RunFile run_file_of(const std::string& run_dir);

/// Prints what its coordinator says of it. Throws Error: not_found when no job runs there.
int show_status(const std::string& run_dir);

/// Becomes the job's program, with its arguments, its CAPSTAN_* and UCX_* variables where this process has
/// none of that name, and CAPSTAN_JOIN. Throws Error.
[[noreturn]] void join_job(const std::string& run_dir);

}  // namespace capstan::launch
