// agent.cpp -- the program `capstan-agent`: supervises a program that cannot be forked.
//
//   capstan-agent [--SETTING=VALUE ...] [--] PROGRAM [ARGUMENT ...]
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/cluster_options.hpp"
#include "capstan/error.hpp"
#include "capstan/version.hpp"
#include "cluster/supervisor/supervised_program.hpp"
#include "launch/exit_codes.hpp"
#include "launch/failure.hpp"
#include "launch/run/program_path.hpp"

namespace capstan::launch {
namespace {

constexpr std::string_view kUsage =
    "Usage: capstan-agent [--SETTING=VALUE ...] [--] PROGRAM [ARGUMENT ...]\n"
    "\n"
    "Runs PROGRAM, which must call Cluster::join, as a rank of a job. The agent restarts PROGRAM if needed\n"
    "and sets the exit code. Capstan's Python package starts capstan-agent by itself. `capstan settings`\n"
    "lists the settings; CAPSTAN_* variables and arguments --capstan-SETTING=VALUE reach PROGRAM, too.\n";

/// Sets settings from the flags before the program. Returns the index of the program in `words`.
std::size_t take_flags(const std::vector<std::string>& words, Settings& settings) {
  std::size_t at = 0;
  for (; at < words.size() && words[at].starts_with("--"); ++at) {
    if (words[at] == "--") return at + 1;
    (void)set_from_argument(settings, "--capstan-" + words[at].substr(2));
  }
  return at;
}

int run_agent(const std::vector<std::string>& words) {
  if (!words.empty() && (words.front() == "--help" || words.front() == "--version")) {
    std::cout << (words.front() == "--help" ? std::string(kUsage)
                                            : fmt::format("capstan-agent {}\n", to_string(version())));
    return static_cast<int>(std::cout.flush() ? Exit::ok : Exit::environment);
  }
  Settings settings = collected_settings({});
  const std::size_t program = take_flags(words, settings);
  if (program >= words.size()) {
    throw Error(Code::invalid_argument, "capstan-agent: no program, expected one; see capstan-agent --help");
  }
  const std::vector<std::string> command(words.begin() + static_cast<std::ptrdiff_t>(program), words.end());
  for (std::size_t i = 1; i < command.size(); ++i) (void)set_from_argument(settings, command[i]);
  if (const int error = run::program_error(command.front(), std::getenv("PATH"))) {
    fmt::print(stderr, "capstan: cannot start {}: {}\n", command.front(), std::strerror(error));
    return static_cast<int>(error == EACCES ? Exit::not_executable : Exit::no_program);
  }
  cluster::run_under_agent(settings, command);
}

}  // namespace
}  // namespace capstan::launch

int main(int argc, char** argv) {
  try {
    return capstan::launch::run_agent({argv + 1, argv + argc});
  } catch (const capstan::Error& error) {
    return capstan::launch::report_failure(error.code(), error.what());
  } catch (const std::exception& error) {
    return capstan::launch::report_failure(capstan::Code::unknown, error.what());
  }
}
