// version.hpp -- the version of the headers, as macros, and of the library that the program runs with.
#pragma once

#include <compare>
#include <string>

#include "capstan/detail/export.hpp"

// CMake configuration fails if these differ from the project's version in CMakeLists.txt.
#define CAPSTAN_VERSION_MAJOR 0
#define CAPSTAN_VERSION_MINOR 1
#define CAPSTAN_VERSION_PATCH 0
#define CAPSTAN_VERSION_STRING "0.1.0"

/// The version as one number for comparisons: `#if CAPSTAN_VERSION >= 10203` tests for 1.2.3 or later.
#define CAPSTAN_VERSION (CAPSTAN_VERSION_MAJOR * 10000 + CAPSTAN_VERSION_MINOR * 100 + CAPSTAN_VERSION_PATCH)

namespace capstan {

struct Version {
  int major = 0;
  int minor = 0;
  int patch = 0;
  friend constexpr auto operator<=>(const Version&, const Version&) = default;
};

/// Version of the headers that a translation unit is compiled with.
inline constexpr Version kHeaderVersion{CAPSTAN_VERSION_MAJOR, CAPSTAN_VERSION_MINOR, CAPSTAN_VERSION_PATCH};

/// Version of the library that the program runs with. It may differ from kHeaderVersion: before version 1.0
/// only in the patch number, from 1.0 on also in the minor number.
CAPSTAN_API Version version() noexcept;

/// "0.1.0"
CAPSTAN_API std::string to_string(const Version& version);

/// How the library was built: for bug reports, and to build it again in the same way.
struct BuildInfo {
  std::string commit;           ///< abbreviated Git commit, or "unknown" outside of Git and release archives
  std::string build_type;       ///< "Release"
  std::string compiler;         ///< "GNU 12.2.0"
  std::string compile_options;  ///< options of the build type and of CMAKE_CXX_FLAGS
  std::string cmake_options;    ///< "BUILD_SHARED_LIBS=ON CAPSTAN_CUDA=AUTO"
};
CAPSTAN_API BuildInfo build_info();

}  // namespace capstan
