// man_page.hpp -- a command's page for man(1).
#pragma once

#include <string>
#include <string_view>

#include "launch/help/command_page.hpp"

namespace capstan::launch::help {

/// "capstan-train-kge", from "capstan train kge"
std::string man_name(std::string_view path);
/// The page in the macros of man(7), with all options.
std::string man_page(const CommandPage& page);

}  // namespace capstan::launch::help
