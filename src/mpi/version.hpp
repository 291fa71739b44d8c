// version.hpp -- which MPI this is.
#pragma once

#include <string>

namespace capstan::mpi {

/// Of the <mpi.h> that this was compiled with: "Open MPI 4.1.4", "MPICH 4.0.2", or "MPI 3.1" where it is
/// another.
std::string header_version();

/// The text of MPI_Get_library_version, which some MPIs make a page long: of the library that was found at
/// run time, which need not be the one at build time. "unknown" where it does not say.
std::string library_version();

}  // namespace capstan::mpi
