// mpi.hpp -- for a program that runs MPI itself. The one public header that includes <mpi.h>.
#pragma once

#include <mpi.h>

#include "capstan/cluster.hpp"

namespace capstan {

/// Makes a cluster of the ranks of `communicator`, by the rules of Cluster::join. Collective. MPI stays the
/// program's own: it is used for one exchange and neither finalized nor called afterwards. There is no agent,
/// so nobody restarts or reports a rank but its peers. Two clusters on two halves of MPI_COMM_WORLD work side
/// by side. Settings are those of the environment; the second form takes them as given.
Cluster cluster_from(MPI_Comm communicator);
Cluster cluster_from(MPI_Comm communicator, const Settings& settings);

}  // namespace capstan
