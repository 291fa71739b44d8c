// command_output.hpp -- what another program prints.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace capstan {

struct CommandOutput {
  int exit_code = 0;  ///< 128 + signal where a signal has ended it
  std::string text = {};
};

enum class Errors { dropped, kept };

/// Runs `words`, the first of them found on PATH, without input, and returns its standard output; with
/// Errors::kept its standard error too, as they come; 1 MiB at most. `changes` are made to its environment
/// ("NAME=value" sets, "NAME" removes). Empty when it cannot be started, or has not ended
/// within `limit`: then it is killed, with the processes of its group. Any thread, also beside UCX's.
std::optional<CommandOutput> command_output(const std::vector<std::string>& words,
                                            std::chrono::milliseconds limit, Errors errors = Errors::dropped,
                                            const std::vector<std::string>& changes = {});

}  // namespace capstan
