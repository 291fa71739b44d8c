// version.cpp -- the version that the library was compiled with.
#include "capstan/version.hpp"

#include <fmt/format.h>

namespace capstan {

Version version() noexcept { return kHeaderVersion; }

std::string to_string(const Version& version) {
  return fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

}  // namespace capstan
