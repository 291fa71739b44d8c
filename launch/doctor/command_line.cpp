// command_line.cpp -- options and help of `capstan doctor`.
#include "launch/doctor/command_line.hpp"

namespace capstan::launch::doctor {

CLI::App& add_command(CLI::App& app, Request& request) {
  CLI::App& command =
      *app.add_subcommand("doctor", "what on these hosts would keep a run from being right and fast");
  command.footer(
      "Example, with the hosts and flags of the run:\n"
      "  mpirun -np 8 --hostfile hosts capstan doctor --checkpoint-dir run/checkpoints\n\n"
      "Ends with 3 when a check fails. docs/doctor.md has more.\n");
  command.add_flag("--list", request.list, "the checks, without running them");
  command.add_flag("--json", request.json, "the same as JSON");
  command.add_option("--only", request.only, "these checks alone, with commas between them")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAMES");
  command
      .add_option("--checkpoint-dir", request.checkpoint_dir,
                  "the folder that a run would write to [CAPSTAN_CHECKPOINT_DIR]")
      ->type_name("DIR");
  command.add_option("--look", request.look)->group("");
  return command;
}

}  // namespace capstan::launch::doctor
