// supervised_program.hpp -- starts a program as the child of an agent that is a program of its own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/settings.hpp"

namespace capstan::cluster {

/// The work of capstan-agent: becomes the agent of this rank, whose child executes `command`, found as by
/// execvp. Executes it in this process if the settings need no agent. Exits with 127 if the program does not
/// exist, and with 126 if it cannot be executed. Throws Error for settings that Cluster::join refuses.
/// REQUIRES: no other thread runs.
[[noreturn]] void run_under_agent(const Settings& settings, const std::vector<std::string>& command);

/// Finds capstan-agent: the file that the variable CAPSTAN_AGENT names, or the first executable one of the
/// places relative to `library`, the file that contains Capstan. Throws Error(not_found) that names all
/// places, or permission_denied if the file of the variable is not executable.
std::filesystem::path find_agent(const std::filesystem::path& library);

}  // namespace capstan::cluster
