// version.hpp -- which UCX runs, and what it knows.
#pragma once

#include <string>
#include <vector>

namespace capstan::transport {

/// Of the library that was found at run time: "1.13.1".
std::string ucx_version();

/// Of the headers that this was built with: "1.13".
std::string ucx_header_version();

/// Whether the library was built for several threads (--enable-mt).
bool ucx_has_threads();

/// Variables of UCX's upper layer, as UCX_NET_DEVICES; its transports have more.
std::vector<std::string> ucx_variables();

}  // namespace capstan::transport
