// name.hpp -- which names variables, counters and other objects may have.
#pragma once

#include <cstddef>
#include <string_view>

namespace capstan {

/// Longest name. HDF5 limits an object header, which holds the name, to 64 KiB.
inline constexpr std::size_t kMaxNameBytes = 512;

/// Throws Error(invalid_argument) unless `name` can stand in every file: 1 to 512 bytes of UTF-8 without
/// control characters, in components between '/' of which none is empty, "." or "..". `kind` is what has the
/// name: "variable", "counter".
void check_name(std::string_view kind, std::string_view name);

}  // namespace capstan
