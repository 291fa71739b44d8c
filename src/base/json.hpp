// json.hpp -- parses untrusted JSON with a bound on its nesting depth.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "capstan/error.hpp"

namespace capstan {

/// Maximum nesting depth. nlohmann::json copies and prints recursively, so a text of some hundred thousand
/// brackets would overflow the stack. Python's json module accepts fewer than 1000 levels.
inline constexpr std::size_t kMaxJsonDepth = 512;

/// Throws Error(code) if `text` is not JSON or is nested more than `max_depth` levels deep. The message
/// starts with `source`, for example a file name, and contains the position of a syntax error.
nlohmann::json parse_json(std::string_view text, std::string_view source, Code code,
                          std::size_t max_depth = kMaxJsonDepth);
/// Returns a discarded value (is_discarded()) where parse_json throws.
nlohmann::json try_parse_json(std::string_view text);

}  // namespace capstan
