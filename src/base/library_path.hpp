// library_path.hpp -- the file that contains Capstan.
#pragma once

#include <string>

namespace capstan {

/// Returns the path of the shared library that contains Capstan: libcapstan.so, or a library that links
/// libcapstan.a. Empty if the program contains Capstan.
std::string library_path();

}  // namespace capstan
