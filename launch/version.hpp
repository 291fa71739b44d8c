// version.hpp -- versions of the program and of its libraries.
#pragma once

#include <string>

namespace capstan::launch {

/// Several lines: version, commit and build type, then MPI, UCX and HDF5. May be called before MPI_Init.
std::string version_text();

}  // namespace capstan::launch
