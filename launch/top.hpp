// top.hpp -- `capstan top`: a table of a running job, redrawn in place.
#pragma once

#include <string>

namespace capstan::launch {

/// Redraws the table once a second until the job ends. Prints one table if `once` is set or standard output
/// is not a terminal. Throws Error(not_found) if no job runs in `run_dir`.
int show_top(const std::string& run_dir, bool once);

}  // namespace capstan::launch
