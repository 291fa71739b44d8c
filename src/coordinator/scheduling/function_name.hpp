// function_name.hpp -- the name of a scheduled function for messages.
#pragma once

#include <string_view>

namespace capstan::coordinator {

/// Returns "train_step" for "... [with auto fn = train_step; ...]".
inline std::string_view short_name(std::string_view name) {
  constexpr std::string_view kBefore = "fn = ";
  if (const auto at = name.find(kBefore); at != name.npos) name.remove_prefix(at + kBefore.size());
  return name.substr(0, name.find_first_of(";]"));
}

}  // namespace capstan::coordinator
