// mpi.hpp -- a cluster in a program that uses MPI itself. The only public header that includes <mpi.h>.
#pragma once

#include <mpi.h>

#include <memory>

#include "capstan/cluster.hpp"
#include "capstan/detail/export.hpp"

namespace capstan {

namespace mpi {
class Communicator;
/// Fails to link in a program that is compiled with another MPI than Capstan.
CAPSTAN_API std::shared_ptr<const Communicator> share(MPI_Comm communicator);
}  // namespace mpi

/// Implementation of cluster_from.
CAPSTAN_API Cluster cluster_of_ranks(const std::shared_ptr<const mpi::Communicator>& ranks,
                                     const ClusterOptions& options);

/// Makes a cluster of the ranks of `communicator`, by the rules of Cluster::join. Collective. The program
/// still owns MPI: Capstan uses it for one exchange and neither calls it afterwards nor finalizes it. There
/// is no agent, so a dead rank is not restarted and only its peers report it. Clusters on disjoint
/// communicators, such as two halves of MPI_COMM_WORLD, may coexist. Settings come from CAPSTAN_* variables,
/// then the file of CAPSTAN_CONFIG, then `options`; bind, bootstrap, join and supervise have no effect.
/// Throws Error(deadline_exceeded) if some ranks of `communicator` do not call it within `start-timeout`.
inline Cluster cluster_from(MPI_Comm communicator, const ClusterOptions& options = {}) {
  return cluster_of_ranks(mpi::share(communicator), options);
}

}  // namespace capstan
