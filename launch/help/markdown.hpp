// markdown.hpp -- docs/command_line.md.
#pragma once

#include <span>
#include <string>

#include "launch/help/command_page.hpp"

namespace capstan::launch::help {

/// The page of all commands. Settings of every job are not repeated: docs/settings.md has them.
std::string markdown(std::span<const CommandPage> pages);

}  // namespace capstan::launch::help
