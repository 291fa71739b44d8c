// context.hpp -- where and with what a figure was measured.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace capstan {
class Cluster;
}

namespace capstan::perf {

struct Options;

/// Machine, versions, commit, date, options. Says so when the build is not optimised. May be called before
/// MPI_Init.
nlohmann::json context_of(const Options& options);
/// Adds the ranks, their roles and hosts, how memory is reached as far as settings say, and the settings.
void add_cluster(nlohmann::json& context, const Cluster& cluster);

}  // namespace capstan::perf
