// command_line.hpp -- the parsed command line of the `capstan` program.
#pragma once

#include <string>
#include <vector>

#include "base/settings.hpp"
#include "launch/checkpoint/request.hpp"
#include "launch/doctor/request.hpp"
#include "launch/help/command_page.hpp"
#include "launch/kge/request.hpp"
#include "launch/plan/request.hpp"
#include "launch/report/request.hpp"
#include "launch/run/request.hpp"
#include "launch/serve/request.hpp"

namespace capstan::launch {

enum class Action {
  print_text,
  print_settings,
  print_settings_markdown,
  show_transports,
  show_status,
  show_top,
  merge_trace,
  join,
  train,
  checkpoint,
  kge_model,
  serve,
  run,
  doctor,
  report,
  plan,
  install_help
};

struct CommandLine {
  Action action = Action::print_text;
  /// print_text: the text to print; show_status, show_top, merge_trace and join: RUN_DIR; install_help: the
  /// directory.
  std::string text = {};
  std::string program = {};  ///< train: the name of the program
  bool once = false;         ///< show_top: print one table and exit
  Settings settings = Settings();
  checkpoint::Request checkpoint = {};
  kge_model::Request kge_model = {};
  serve::Request serve = {};
  run::Request run = {};
  doctor::Request doctor = {};
  report::Request report = {};
  plan::Request plan = {};
  std::vector<help::CommandPage> pages = {};  ///< install_help
};

/// Merges the command line, the CAPSTAN_* variables of `environment` (in the format of `environ`) and the
/// TOML file that --config or CAPSTAN_CONFIG names. Throws Error: invalid_argument for an unknown option,
/// command, setting or value, with the nearest known name; not_found for a missing TOML file.
CommandLine parse_command_line(int argc, const char* const* argv, const char* const* environment);

}  // namespace capstan::launch
