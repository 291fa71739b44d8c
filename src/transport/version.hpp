// version.hpp -- which UCX runs.
#pragma once

#include <string>

namespace capstan::transport {

/// Of the library that was found at run time: "1.13.1".
std::string ucx_version();

}  // namespace capstan::transport
