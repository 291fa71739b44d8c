// command_line.hpp -- what the user of the `capstan` program asked for.
#pragma once

#include <string>

#include "base/settings.hpp"
#include "launch/checkpoint/request.hpp"
#include "launch/doctor/request.hpp"
#include "launch/run/request.hpp"

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
  train_kge,
  train_lr,
  train_fm,
  train_mlp,
  checkpoint,
  run,
  doctor
};

struct CommandLine {
  Action action = Action::print_text;
  std::string text =
      {};  // of print_text: --help or --version; of show_status, show_top, merge_trace and join: RUN_DIR
  bool once = false;  // of show_top
  Settings settings = Settings();
  checkpoint::Request checkpoint = {};  // of checkpoint
  run::Request run = {};                // of run
  doctor::Request doctor = {};          // of doctor
};

/// Reads the command line, the CAPSTAN_* variables of `environment` (as `environ`) and the TOML file that
/// --config or CAPSTAN_CONFIG names. Throws Error(invalid_argument) with the nearest name for what is
/// unknown.
CommandLine parse_command_line(int argc, const char* const* argv, const char* const* environment);

}  // namespace capstan::launch
