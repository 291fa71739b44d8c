// paced_file.hpp -- reads the paced steps of a report of perf_scale.
#pragma once

#include <string>
#include <vector>

#include "simulate/calibrate.hpp"

namespace capstan::perf {

/// Appends the run of paced steps in a report of perf_scale. Throws Error: not_found, or invalid_argument if
/// the file has no such run, or a result has no number.
void read_paced_runs(const std::string& path, std::vector<simulate::PacedRun>& runs);

/// Combines runs of the same job: medians of each value, ordered by computation and workers.
std::vector<simulate::PacedRun> median_of_equal_jobs(std::vector<simulate::PacedRun> runs);

}  // namespace capstan::perf
