// command_line.hpp -- declares `capstan evaluate`, `capstan predict` and `capstan similar`.
#pragma once

#include <CLI/CLI.hpp>
#include <vector>

#include "launch/kge/request.hpp"

namespace capstan::launch::kge_model {

/// Adds the commands to `app`; parsing fills `request`. Returns them and their subcommands.
std::vector<CLI::App*> add_commands(CLI::App& app, Request& request);

}  // namespace capstan::launch::kge_model
