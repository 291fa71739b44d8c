// core_distance.hpp -- how far apart two cores are.
#pragma once

#include <optional>

namespace capstan::perf {

/// Measures for 20 ms how long a cache line takes from one core to another and back, in nanoseconds, between
/// the first two CPUs that this process may use. About 60 ns mean that the cores share a cache; several
/// hundred that they do not, so that pushes and messages are slower. In a virtual machine this changes with
/// the placement of its CPUs. Returns nullopt if there is one CPU only.
std::optional<double> cache_line_round_trip_ns();

}  // namespace capstan::perf
