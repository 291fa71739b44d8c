// version.cpp -- the MPI versions of the header and of the library.
#include "mpi/version.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <array>

namespace capstan::mpi {

std::string header_version() {
#if defined(OMPI_MAJOR_VERSION)
  return fmt::format("Open MPI {}.{}.{}", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
  return fmt::format("MPICH {}", MPICH_VERSION);
#else
  return fmt::format("MPI {}.{}", MPI_VERSION, MPI_SUBVERSION);
#endif
}

std::string library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "unknown";
  return std::string(text.data(), static_cast<std::size_t>(length));
}

}  // namespace capstan::mpi
