// mpi.hpp -- for a program that runs MPI itself. The one public header that includes <mpi.h>.
#pragma once

#include <mpi.h>

#include <memory>

#include "capstan/cluster.hpp"
#include "capstan/detail/export.hpp"

namespace capstan {

namespace mpi {
class Communicator;
/// Does not link in a program that is compiled with another MPI than Capstan.
CAPSTAN_API std::shared_ptr<const Communicator> share(MPI_Comm communicator);
}  // namespace mpi

/// What cluster_from calls.
CAPSTAN_API Cluster cluster_of_ranks(const std::shared_ptr<const mpi::Communicator>& ranks,
                                     const ClusterOptions& options);

/// Makes a cluster of the ranks of `communicator`, by the rules of Cluster::join. Collective. MPI stays the
/// program's own: it is used for one exchange and neither finalized nor called afterwards. There is no agent,
/// so nobody restarts or reports a rank but its peers. Two clusters on two halves of MPI_COMM_WORLD work side
/// by side. Settings are CAPSTAN_* variables,
/// then the file of CAPSTAN_CONFIG, then `options`; bind, bootstrap, join and supervise have no effect.
/// Throws Error(deadline_exceeded) on the ranks that are there, when others have not come within
/// `start-timeout`.
inline Cluster cluster_from(MPI_Comm communicator, const ClusterOptions& options = {}) {
  return cluster_of_ranks(mpi::share(communicator), options);
}

}  // namespace capstan
