// command_line.hpp -- the command-line options of `capstan report`.
#pragma once

#include <CLI/CLI.hpp>

#include "launch/report/request.hpp"

namespace capstan::launch::report {

/// Adds the command to `app`; parsing fills `request`, which must outlive `app`.
CLI::App& add_command(CLI::App& app, Request& request);

}  // namespace capstan::launch::report
