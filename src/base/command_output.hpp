// command_output.hpp -- runs a command and returns its output.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace capstan {

struct CommandOutput {
  int exit_code = 0;  ///< 128 + signal number if a signal ended the command
  std::string text = {};
};

enum class StderrMode { discarded, captured };

/// Runs the command `words`, found on PATH, with empty input. Returns its standard output, and with
/// StderrMode::captured its standard error interleaved, 1 MiB at most. `changes` modify the command's
/// environment: "NAME=value" sets a variable, "NAME" removes it. Returns nullopt if the command cannot start
/// or exceeds `limit`; then its process group is killed. Any thread; safe with registered UCX memory.
std::optional<CommandOutput> command_output(const std::vector<std::string>& words,
                                            std::chrono::milliseconds limit,
                                            StderrMode stderr_mode = StderrMode::discarded,
                                            const std::vector<std::string>& changes = {});

}  // namespace capstan
