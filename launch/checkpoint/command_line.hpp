// command_line.hpp -- `capstan checkpoint` and its subcommands, for the parser of the program.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "launch/checkpoint/request.hpp"

namespace capstan::launch::checkpoint {

/// Adds the command and its subcommands to `app`; parsing fills `request`, which must outlive `app`. Returns
/// the command, followed by its subcommands.
std::vector<CLI::App*> add_commands(CLI::App& app, Request& request);

/// Names of the subcommands for an error message: "list, show, ...".
std::string verbs();

}  // namespace capstan::launch::checkpoint
