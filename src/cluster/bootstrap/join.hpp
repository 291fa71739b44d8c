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

/// Joins like Cluster::join, with these settings only.
Cluster join(const Settings& settings);
/// Joins like cluster_from, with these settings only.
Cluster join(const std::shared_ptr<const mpi::Communicator>& ranks, const Settings& settings);

}  // namespace cluster
}  // namespace capstan
