// context.hpp -- context of a measurement: machine, versions, options, cluster.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace capstan {
class Cluster;
}

namespace capstan::perf {

struct Options;

/// Returns machine, versions, commit, date and options, with a warning if the build is not optimized. May be
/// called before MPI_Init.
nlohmann::json context_of(const Options& options);
/// Adds the ranks, their roles and hosts, the transport settings and all other settings.
void add_cluster(nlohmann::json& context, const Cluster& cluster);
/// Adds cache_line_round_trip_ns(), or null. Call it in one process at a time.
void add_core_distance(nlohmann::json& context);

}  // namespace capstan::perf
