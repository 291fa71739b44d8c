// completions.hpp -- completion of commands, options and values in shells.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "launch/help/command_page.hpp"

namespace capstan::launch::help {

inline constexpr std::string_view kShells = "bash|zsh|fish";

/// The script that completes the commands of `pages`. Words that are no command, option or known value
/// complete as file names. REQUIRES: `shell` is one of kShells.
std::string completions(std::span<const CommandPage> pages, std::string_view shell);

}  // namespace capstan::launch::help
