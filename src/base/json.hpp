// json.hpp -- JSON from files, variables and the network, parsed with a bound on its depth.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "capstan/error.hpp"

namespace capstan {

/// Most arrays and objects inside one another. nlohmann::json copies and prints by recursion, so that a text
/// of some hundred thousand brackets would overflow the stack; Python's json module reads less than 1000
/// levels.
inline constexpr std::size_t kMaxJsonDepth = 512;

/// Throws Error(code) that names `source`, such as a file: for text that is not JSON, with the place, and for
/// more than `max_depth` levels of arrays and objects, with their number.
nlohmann::json parse_json(std::string_view text, std::string_view source, Code code,
                          std::size_t max_depth = kMaxJsonDepth);
/// Returns a discarded value (is_discarded()) where parse_json throws.
nlohmann::json try_parse_json(std::string_view text);

}  // namespace capstan
