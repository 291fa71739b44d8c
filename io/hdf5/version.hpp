// version.hpp -- which HDF5 this was built with, and which one runs.
#pragma once

#include <string>

namespace capstan::io {

/// Of the headers: "1.10.8".
std::string hdf5_header_version();
/// Of the library that was found at run time.
std::string hdf5_version();

}  // namespace capstan::io
