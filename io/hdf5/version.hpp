// version.hpp -- versions of HDF5: built with, and loaded.
#pragma once

#include <string>

namespace capstan::io {

/// Version of the headers, such as "1.10.8".
std::string hdf5_header_version();
/// Version of the library loaded at run time.
std::string hdf5_library_version();

}  // namespace capstan::io
