// launcher_rank.hpp -- which rank this process is, before MPI is initialised.
#pragma once

namespace capstan::launch {

/// From what mpirun, mpiexec.hydra, PMIx or srun put into the environment; 0 where none did.
int launcher_rank();

}  // namespace capstan::launch
