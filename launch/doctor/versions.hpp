// versions.hpp -- compares the library versions of the build with those at run time.
#pragma once

#include <string>
#include <string_view>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

Finding check_mpi(const Request& request);
Finding check_ucx(const Request& request);
Finding check_hdf5(const Request& request);
Finding check_hwloc(const Request& request);

/// Compares the components that both versions have: "1.13" equals "1.13.1". A different major version fails;
/// a different minor version or release warns.
Finding judge_versions(std::string_view built, std::string_view runs);

/// `built`: "Open MPI 4.1.4" or "MPICH 4.0.2", from mpi.h; `runs`: the text of MPI_Get_library_version.
/// MPI libraries of different families are not binary compatible.
Finding judge_mpi(std::string_view built, std::string_view runs);

}  // namespace capstan::launch::doctor
