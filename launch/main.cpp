// main.cpp -- the `capstan` program: parses the command line, runs the command, maps an Error to an exit
// code.
#include <unistd.h>

#include <exception>
#include <iostream>

#include "capstan/error.hpp"
#include "launch/checkpoint/commands.hpp"
#include "launch/command_line.hpp"
#include "launch/doctor/doctor.hpp"
#include "launch/failure.hpp"
#include "launch/help/install.hpp"
#include "launch/kge/run.hpp"
#include "launch/launcher_rank.hpp"
#include "launch/plan/run.hpp"
#include "launch/report/report.hpp"
#include "launch/run/run.hpp"
#include "launch/running_job.hpp"
#include "launch/serve/run.hpp"
#include "launch/top.hpp"
#include "launch/trace.hpp"
#include "launch/train.hpp"
#include "launch/transports.hpp"

namespace capstan::launch {
namespace {

int run_command(int argc, char** argv) {
  const CommandLine line = parse_command_line(argc, argv, environ);
  switch (line.action) {
    case Action::train:
      return run_train(line.program, line.settings);
    case Action::show_transports:
      return run_show_transports(line.settings);
    case Action::show_status:
      return show_status(line.text);
    case Action::show_top:
      return show_top(line.text, line.once);
    case Action::merge_trace:
      return merge_trace(line.text);
    case Action::join:
      join_job(line.text);
    case Action::run:
      return run::run(line.run);
    case Action::doctor:
      doctor::run(line.doctor);
    case Action::report:
      return report::run(line.report);
    case Action::print_text:
    case Action::print_settings:
    case Action::print_settings_markdown:
    case Action::checkpoint:
    case Action::kge_model:
    case Action::serve:
    case Action::plan:
    case Action::install_help:
      break;
  }
  if (launcher_rank() != 0) return 0;
  switch (line.action) {
    case Action::install_help:
      help::install(line.pages, line.text);
      break;
    case Action::checkpoint:
      return checkpoint::run(line.checkpoint);
    case Action::kge_model:
      return kge_model::run(line.kge_model);
    case Action::serve:
      return serve::run(line.serve);
    case Action::plan:
      return plan::run(line.plan);
    case Action::print_text:
      std::cout << line.text;
      break;
    case Action::print_settings:
      line.settings.print(std::cout);
      break;
    case Action::print_settings_markdown:
      line.settings.print_markdown(std::cout);
      break;
    default:
      break;
  }
  std::cout.flush();
  if (!std::cout) throw Error(Code::resource_exhausted, "cannot write to standard output");
  return 0;
}

}  // namespace
}  // namespace capstan::launch

int main(int argc, char** argv) {
  try {
    return capstan::launch::run_command(argc, argv);
  } catch (const capstan::Error& error) {
    return capstan::launch::report_failure(error.code(), error.what());
  } catch (const std::exception& error) {
    return capstan::launch::report_failure(capstan::Code::unknown, error.what());
  }
}
