// core_distance.hpp -- how far apart two cores are.
#pragma once

#include <optional>

namespace capstan::perf {

/// Measures for 20 ms how long a cache line takes from one core to another and back, in nanoseconds, between
/// the first and the last CPU that the calling thread may use. About 60 ns mean that they share a cache;
/// several hundred that they do not, so that pushes and messages between them are slower. In a virtual
/// machine this changes with the placement of its CPUs. If ranks are bound to cores, it is not the distance
/// between ranks. Returns nullopt if there is one CPU only, or if the CPUs are not known.
std::optional<double> cache_line_round_trip_ns();

}  // namespace capstan::perf
