// supervised_program.hpp -- starts a program as the child of an agent that is a program of its own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/settings.hpp"

namespace capstan::cluster {

/// Implements capstan-agent: this process becomes the agent of the rank, and its child executes `command`,
/// found as by execvp. If the settings need no agent, this process executes `command` itself. Exits with 127
/// if the program does not exist, and with 126 if it cannot be executed. Throws Error for settings that
/// Cluster::join refuses. REQUIRES: no other thread runs.
[[noreturn]] void run_under_agent(const Settings& settings, const std::vector<std::string>& command);

/// Finds capstan-agent: the file that the variable CAPSTAN_AGENT names, else the first executable file of
/// several paths relative to `library`, the file that contains Capstan. Throws Error: not_found, with all
/// paths, or permission_denied if the file of the variable is not executable.
std::filesystem::path find_agent(const std::filesystem::path& library);

}  // namespace capstan::cluster
