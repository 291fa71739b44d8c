// launcher_rank.hpp -- the rank of this process, before MPI_Init.
#pragma once

namespace capstan::launch {

/// Reads the environment variables of mpirun, mpiexec.hydra, PMIx and srun; returns 0 if none is set.
int launcher_rank();

}  // namespace capstan::launch
