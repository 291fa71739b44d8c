// version.hpp -- the version of UCX and its build options.
#pragma once

#include <string>
#include <vector>

namespace capstan::transport {

/// Version of the library at run time: "1.13.1".
std::string ucx_version();

/// Version of the headers at compile time: "1.13".
std::string ucx_header_version();

/// Returns true if the library was built with thread support (--enable-mt).
bool ucx_has_threads();

/// Returns the names of the environment variables of UCP, such as UCX_NET_DEVICES, but not of those that only
/// the transports (UCT) read.
std::vector<std::string> ucx_variables();

}  // namespace capstan::transport
