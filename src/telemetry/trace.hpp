// trace.hpp -- the end of a job's trace: one timeline of all ranks.
#pragma once

#include <map>

#include "cluster/runtime.hpp"
#include "io/events/merge_traces.hpp"

namespace capstan::telemetry {

/// With --trace: keeps the clocks, and puts the files of all ranks together if that is quickly done. What
/// goes wrong is a warning.
void end_trace(cluster::Runtime& runtime, const std::map<int, io::ClockOffset>& clocks) noexcept;

}  // namespace capstan::telemetry
