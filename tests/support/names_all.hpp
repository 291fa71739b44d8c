// names_all.hpp -- a matcher for the parameters that an error message must contain, whatever its wording.
#pragma once

#include <gmock/gmock.h>

#include <cctype>
#include <string>
#include <utility>
#include <vector>

namespace capstan {

/// Returns whether the characters on both sides of `at` belong to the same word or number.
inline bool is_inside_word(const std::string& text, std::size_t at) {
  const auto in_word = [&](std::size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_');
  };
  if (at == 0 || !in_word(at)) return false;
  const bool is_negative = text[at - 1] == '-' && std::isdigit(static_cast<unsigned char>(text[at])) != 0 &&
                           (at == 1 || !in_word(at - 2));
  return in_word(at - 1) || is_negative;
}

/// Returns whether `text` contains `parameter`, other than as a part of a longer word or number.
inline bool contains_parameter(const std::string& text, const std::string& parameter) {
  for (auto at = text.find(parameter); at != std::string::npos; at = text.find(parameter, at + 1)) {
    if (!is_inside_word(text, at) && !is_inside_word(text, at + parameter.size())) return true;
  }
  return false;
}

MATCHER_P(NamesParameters, parameters, "names all of " + testing::PrintToString(parameters)) {
  std::vector<std::string> missing;
  for (const std::string& parameter : parameters) {
    if (!contains_parameter(arg, parameter)) missing.push_back(parameter);
  }
  *result_listener << "without " << testing::PrintToString(missing);
  return missing.empty();
}

/// Matches a message that contains each of `parameters`, in any order: a setting, a file and line, a rank, a
/// value, a command. "dim" is not found in "dims", nor "1" in "10" or "-1".
inline auto NamesAll(std::vector<std::string> parameters) { return NamesParameters(std::move(parameters)); }

}  // namespace capstan
