// describe.hpp -- the pages of the commands, from the parser of the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "launch/help/command_page.hpp"

namespace capstan::launch::help {

/// A heading with this prefix is for settings that every job has; only --help-all lists them.
inline constexpr const char* kCommonGroup = "Settings";

CommandPage describe(const CLI::App& command);
/// The page of `command` and those of all commands below it, parents first.
std::vector<CommandPage> describe_all(const CLI::App& command);

}  // namespace capstan::launch::help
