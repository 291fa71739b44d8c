// packed_names.hpp -- names of rows as a variable of int64, so that checkpoints hold them.
//
// The names are joined by line feeds and padded with zero bytes, 8 bytes in each element, in host order
// (little-endian). A variable is sharded over the ps, saved and exported as any other: a million names of 20
// bytes take 20 MB, beside a gigabyte of rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::train {

/// REQUIRES: no name has a line feed or a zero byte.
std::vector<std::int64_t> pack_names(std::span<const std::string> names);
std::vector<std::string> unpack_names(std::span<const std::int64_t> packed);

/// Returns suggestions for an unknown `name`: up to `count` names that contain it, the shortest ones first,
/// or else the one with the fewest edits, if it is similar. Reads all names.
std::vector<std::string> near_names(std::string_view name, std::span<const std::string> names,
                                    std::size_t count);

}  // namespace capstan::train
