// main.cpp -- the `capstan` program: reads the command line, runs the command, turns an Error into an exit
// code.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>

#include "capstan/error.hpp"
#include "launch/command_line.hpp"
#include "launch/exit_codes.hpp"
#include "launch/launcher_rank.hpp"
#include "launch/running_job.hpp"
#include "launch/train_kge.hpp"
#include "launch/train_model.hpp"
#include "launch/transports.hpp"

namespace capstan::launch {
namespace {

/// A launcher ends the whole job at the first rank that fails. The others give rank 0 this long to say why.
constexpr std::chrono::milliseconds kRankZeroSpeaksFirst{500};

int run(int argc, char** argv) {
  const CommandLine line = parse_command_line(argc, argv, environ);
  switch (line.action) {
    case Action::train_kge:
      return run_train_kge(line.settings, argc, argv);
    case Action::train_lr:
      return run_train_model(train::Program::lr, line.settings);
    case Action::train_fm:
      return run_train_model(train::Program::fm, line.settings);
    case Action::train_mlp:
      return run_train_model(train::Program::mlp, line.settings);
    case Action::show_transports:
      return run_show_transports(line.settings);
    case Action::show_status:
      return show_status(line.text);
    case Action::join:
      join_job(line.text);
    case Action::print_text:
    case Action::print_settings:
    case Action::print_settings_markdown:
      break;
  }
  if (launcher_rank() != 0) return 0;
  switch (line.action) {
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
  if (!std::cout) throw Error(Code::resource_exhausted, "standard output: cannot be written");
  return 0;
}

int fail(Code code, std::string_view message) {
  const int rank = launcher_rank();
  std::string text;
  if (rank == 0) {
    text.append("capstan: ").append(message).append("\n");
    if (!hint(code).empty()) text.append("hint: ").append(hint(code)).append("\n");
  } else if (own_failure(code)) {
    text.append("capstan: rank ").append(std::to_string(rank)).append(": ").append(message).append("\n");
  }
  std::fputs(text.c_str(), stderr);  // in one piece, whatever other ranks write
  if (rank != 0) std::this_thread::sleep_for(kRankZeroSpeaksFirst);
  return static_cast<int>(exit_code(code));
}

}  // namespace
}  // namespace capstan::launch

int main(int argc, char** argv) {
  try {
    return capstan::launch::run(argc, argv);
  } catch (const capstan::Error& error) {
    return capstan::launch::fail(error.code(), error.what());
  } catch (const std::exception& error) {
    return capstan::launch::fail(capstan::Code::unknown, error.what());
  }
}
