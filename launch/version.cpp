// version.cpp -- the text of `capstan --version`.
#include "launch/version.hpp"

#include <fmt/format.h>

#include <string_view>

#include "capstan/version.hpp"
#include "launch/build_info.hpp"
#include "mpi/version.hpp"
#include "transport/ucx/version.hpp"

namespace capstan::launch {
namespace {

/// Text before the first comma or newline: "Open MPI v4.1.4".
std::string first_field(std::string_view text) {
  return std::string(text.substr(0, text.find_first_of(",\n")));
}

}  // namespace

std::string version_text() {
  const BuildInfo built = build_info();
  return fmt::format(
      "capstan {} (commit {}, {})\n"
      "  MPI   built with {}, runs with {}\n"
      "  UCX   built with {}, runs with {}\n"
      "  HDF5  built with {}\n",
      to_string(version()), built.commit, built.build_type, mpi::header_version(),
      first_field(mpi::library_version()), CAPSTAN_BUILT_WITH_UCX, transport::ucx_version(),
      CAPSTAN_BUILT_WITH_HDF5);
}

}  // namespace capstan::launch
