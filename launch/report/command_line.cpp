// command_line.cpp -- options and help texts of `capstan report`.
#include "launch/report/command_line.hpp"

namespace capstan::launch::report {

CLI::App& add_command(CLI::App& app, Request& request) {
  CLI::App& command = *app.add_subcommand(
      "report", "write the state of this machine into one anonymized file, to send it to an engineer");
  command.add_option("RUN_DIR", request.run_dir,
                     "the --run-dir of a job, whose logs and metrics are included");
  command.add_option("--output", request.output, "the file to write; a large report becomes FILE.gz")
      ->default_str(request.output)
      ->type_name("FILE");
  command.add_flag("--force", request.force, "replace existing output");
  command.add_flag("--perf", request.perf,
                   "also run two short benchmarks with a ps and a worker on this host");
  return command;
}

}  // namespace capstan::launch::report
