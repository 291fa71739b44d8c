// join.hpp -- Cluster::join for programs that have read the settings themselves.
#pragma once

#include <memory>

#include "base/settings.hpp"
#include "capstan/cluster.hpp"

namespace capstan {

namespace mpi {
class Communicator;
}

namespace cluster {

/// Joins as Cluster::join does, with these settings alone.
Cluster join(const Settings& settings);
/// Joins as cluster_from does, with these settings alone.
Cluster join(const std::shared_ptr<const mpi::Communicator>& ranks, const Settings& settings);

}  // namespace cluster
}  // namespace capstan
