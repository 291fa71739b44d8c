// mpi_bootstrap.hpp -- the one exchange that MPI does for us.
#pragma once

#include <mpi.h>

#include <optional>
#include <vector>

#include "cluster/member.hpp"

namespace capstan::cluster {

/// Gathers every rank's hello and makes the members. Collective over `communicator`; throws the same Error on
/// every rank when they do not fit together.
Table exchange(MPI_Comm communicator, const Hello& hello);

/// How many ranks a launcher says it has started with this one, from the variables that Open MPI, MPICH, PMIx
/// and Slurm set. Nothing when started alone.
std::optional<int> launched_ranks();
/// This one's number among them, from the same variables; 0 when started alone.
int launched_rank();

/// This process's hello; `build` is the XXH3 of the binary on disk, `roles` is left to the caller.
Hello make_hello();

}  // namespace capstan::cluster
