// trace.hpp -- `capstan trace`: one timeline of the traces that a job's ranks have left.
#pragma once

#include <string>

namespace capstan::launch {

/// Writes RUN_DIR/trace.json and says so. Throws Error: not_found when there are no traces.
int merge_trace(const std::string& run_dir);

}  // namespace capstan::launch
