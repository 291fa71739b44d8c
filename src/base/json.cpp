// json.cpp -- checks the nesting depth, then parses.
#include "base/json.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace capstan {
namespace {

/// Nesting depth of valid JSON; for other text, an upper bound of the depth that a parser reaches.
std::size_t depth_of(std::string_view text) noexcept {
  std::size_t depth = 0, deepest = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      depth -= depth > 0 ? 1 : 0;
    }
  }
  return deepest;
}

/// Extracts "line 1, column 2: syntax error ..." from "[json.exception.parse_error.101] parse error at line
/// 1, ...".
std::string reason_of(const nlohmann::json::exception& error) {
  const std::string text = error.what();
  const std::size_t line = text.find("line ");
  const std::size_t bracket = text.find("] ");
  if (line != std::string::npos) return text.substr(line);
  return bracket == std::string::npos ? text : text.substr(bracket + 2);
}

}  // namespace

nlohmann::json parse_json(std::string_view text, std::string_view source, Code code, std::size_t max_depth) {
  if (const std::size_t depth = depth_of(text); depth > max_depth) {
    throw Error(code, fmt::format("{}: its JSON is nested {} levels deep, expected at most {}", source, depth,
                                  max_depth));
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw Error(code, fmt::format("{} is not JSON: {}", source, reason_of(error)));
  }
}

nlohmann::json try_parse_json(std::string_view text) {
  if (depth_of(text) > kMaxJsonDepth) return nlohmann::json::value_t::discarded;
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace capstan
