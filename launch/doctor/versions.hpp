// versions.hpp -- what this program was built against, and what it runs with.
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

/// "1.13" and "1.13.1" are the same as far as both go. Another major version fails, another minor one or
/// release warns.
Finding judge_versions(std::string_view built, std::string_view runs);

/// `built`: "Open MPI 4.1.4" or "MPICH 4.0.2", from mpi.h; `runs`: the text of MPI_Get_library_version.
/// Libraries of two families cannot run each other's programs.
Finding judge_mpi(std::string_view built, std::string_view runs);

}  // namespace capstan::launch::doctor
