// version.hpp -- the versions of the MPI implementation at build time and at run time.
#pragma once

#include <string>

namespace capstan::mpi {

/// Version of <mpi.h> at build time: "Open MPI 4.1.4", "MPICH 4.0.2", or "MPI 3.1" for another
/// implementation.
std::string header_version();

/// Text of MPI_Get_library_version, which may be a page long. It describes the library found at run time,
/// which may differ from the one at build time. "unknown" if the call fails.
std::string library_version();

}  // namespace capstan::mpi
