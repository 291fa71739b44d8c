// top.hpp -- `capstan top`: a job that runs, as a table that is drawn over itself.
#pragma once

#include <string>

namespace capstan::launch {

/// Once a second until the job ends or the user does; one table where standard output is no terminal, or with
/// `once`. Throws Error: not_found when no job runs there.
int show_top(const std::string& run_dir, bool once);

}  // namespace capstan::launch
