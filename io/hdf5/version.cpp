// version.cpp -- the version of HDF5 at compile time (H5_VERS_*) and at run time (H5get_libversion).
#include "io/hdf5/version.hpp"

#include "io/hdf5/h5.hpp"

namespace capstan::io {

std::string hdf5_header_version() {
  return std::to_string(H5_VERS_MAJOR) + "." + std::to_string(H5_VERS_MINOR) + "." +
         std::to_string(H5_VERS_RELEASE);
}

std::string hdf5_library_version() {
  const h5::Session session;
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  h5::check(H5get_libversion(&major, &minor, &release), "H5get_libversion", {});
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

}  // namespace capstan::io
