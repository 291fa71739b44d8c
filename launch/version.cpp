// version.cpp -- the text of `capstan --version`.
#include "launch/version.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <string_view>

#include "launch/build_info.hpp"
#include "transport/version.hpp"

namespace capstan::launch {
namespace {

/// The library that was found at run time, which need not be the one at build time.
std::string running_mpi() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "unknown";
  const std::string_view all(text.data(), static_cast<std::size_t>(length));
  return std::string(all.substr(0, all.find_first_of(",\n")));  // MPICH goes on for a page
}

}  // namespace

std::string version_text() {
  return fmt::format(
      "capstan {} (commit {}, {})\n"
      "  MPI   built with {}, runs with {}\n"
      "  UCX   built with {}, runs with {}\n"
      "  HDF5  built with {}\n",
      CAPSTAN_VERSION, CAPSTAN_COMMIT, CAPSTAN_BUILD_TYPE, CAPSTAN_BUILT_WITH_MPI, running_mpi(),
      CAPSTAN_BUILT_WITH_UCX, transport::ucx_version(), CAPSTAN_BUILT_WITH_HDF5);
}

}  // namespace capstan::launch
