// handle.hpp -- MPI types and error handling for the sources of this layer.
#pragma once

#include <mpi.h>

#include "mpi/communicator.hpp"

namespace capstan::mpi {

struct Communicator::Handle {
  MPI_Comm communicator = MPI_COMM_NULL;
};

/// Throws Error(internal) unless `status` is MPI_SUCCESS.
void check(int status, const char* call);

}  // namespace capstan::mpi
