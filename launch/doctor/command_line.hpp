// command_line.hpp -- the command-line options of `capstan doctor`.
#pragma once

#include <CLI/CLI.hpp>

#include "launch/doctor/request.hpp"

namespace capstan::launch::doctor {

/// Adds the command to `app`; parsing fills `request`, which must outlive `app`.
CLI::App& add_command(CLI::App& app, Request& request);

}  // namespace capstan::launch::doctor
