// command_line.cpp -- options and help texts of `capstan doctor`.
#include "launch/doctor/command_line.hpp"

namespace capstan::launch::doctor {

CLI::App& add_command(CLI::App& app, Request& request) {
  CLI::App& command =
      *app.add_subcommand("doctor", "check the hosts for problems that make a run slow or make it fail");
  command.add_flag("--list", request.list, "list the checks without running them");
  command.add_flag("--json", request.json, "print the report as JSON");
  command.add_option("--only", request.only, "run only these checks, separated by commas")
      ->default_str("all")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAMES");
  command.add_option("--checkpoint-dir", request.checkpoint_dir, "directory for checkpoints of a run")
      ->default_str("$CAPSTAN_CHECKPOINT_DIR")
      ->type_name("DIR");
  command.add_option("--probe", request.probe)->group("");
  return command;
}

}  // namespace capstan::launch::doctor
