// name.hpp -- checks the names of variables, counters and other objects.
#pragma once

#include <cstddef>
#include <string_view>

namespace capstan {

/// Maximum length. HDF5 limits an object header, which contains the name, to 64 KiB.
inline constexpr std::size_t kMaxNameBytes = 512;

/// Throws Error(invalid_argument) unless `name` is valid in every file format: 1 to 512 bytes of UTF-8
/// without control characters, in components between '/' of which none is empty, "." or "..". `kind` is the
/// kind of object: "variable", "counter".
void check_name(std::string_view kind, std::string_view name);

}  // namespace capstan
