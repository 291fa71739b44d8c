// trace.hpp -- `capstan trace`: merges the traces of a job's ranks into one timeline.
#pragma once

#include <string>

namespace capstan::launch {

/// Writes RUN_DIR/trace.json and prints its path. Throws Error(not_found) if there are no traces.
int merge_trace(const std::string& run_dir);

}  // namespace capstan::launch
