// trace.hpp -- completion of a job's trace: one timeline of all ranks.
#pragma once

#include <map>

#include "cluster/runtime.hpp"
#include "io/events/merge_traces.hpp"

namespace capstan::telemetry {

/// With --trace: writes the clock offsets, and merges the traces of all ranks unless they are too large.
/// Errors are logged as warnings.
void end_trace(cluster::Runtime& runtime, const std::map<int, io::ClockOffset>& clocks) noexcept;

}  // namespace capstan::telemetry
