// report.hpp -- `capstan report`: one anonymized file that describes a host and a job.
#pragma once

#include "launch/report/request.hpp"

namespace capstan::launch::report {

/// Runs on every rank; `capstan doctor` runs on all of them, rank 0 writes the file. Returns the exit code.
/// Throws Error: already_exists if the output exists, without `force`; not_found for a missing directory or
/// benchmark; invalid_argument for `perf` under a launcher; resource_exhausted.
int run(const Request& request);

}  // namespace capstan::launch::report
