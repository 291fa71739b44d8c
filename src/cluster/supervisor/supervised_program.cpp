// supervised_program.cpp -- from a program to capstan-agent by exec, and from there to the program again.
#include "cluster/supervisor/supervised_program.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "base/cluster_options.hpp"
#include "base/exit_codes.hpp"
#include "base/library_path.hpp"
#include "capstan/detail/supervised_program.hpp"
#include "capstan/error.hpp"
#include "cluster/bootstrap/start.hpp"
#include "cluster/supervisor/agent.hpp"
#include "cluster/supervisor/agent_link.hpp"
#include "cluster/supervisor/heartbeat.hpp"
#include "mpi/communicator.hpp"

namespace capstan {
namespace cluster {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAgentVariable = "CAPSTAN_AGENT";

/// Returns how this rank finds the others; nothing if Cluster::join would start no agent.
std::optional<Start> supervised_start(const Settings& settings) {
  if (settings.text("supervise") != "on" || !settings.text("join").empty()) return std::nullopt;
  return choose_start(settings);
}

/// Pointers into `words`, as exec needs them.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Exits as a shell does if the program cannot be executed.
[[noreturn]] void exec_program(std::vector<std::string> command) {
  std::fflush(nullptr);
  execvp(command.front().c_str(), pointers_to(command).data());
  const int error = errno;
  std::fprintf(stderr, "capstan: cannot start %s: %s\n", command.front().c_str(), std::strerror(error));
  _exit(error == ENOENT ? kExitNoProgram : kExitNotExecutable);
}

Settings settings_with_arguments(const ClusterOptions& options, const std::vector<std::string>& command) {
  Settings settings = collected_settings(options);
  for (std::size_t i = 1; i < command.size(); ++i) (void)set_from_argument(settings, command[i]);
  return settings;
}

}  // namespace

void run_under_agent(const Settings& settings, const std::vector<std::string>& command) {
  if (const auto start = supervised_start(settings)) {
    // Returns in each child: the first one, and one for each restart.
    AgentLink link = split_into_agent_and_child(agent_options(settings, *start));
    link.pass_to_program();
    exec_program(command);
  }
  exec_program(command);
}

fs::path find_agent(const fs::path& library) {
  if (const char* const named = std::getenv(kAgentVariable)) {
    if (access(named, X_OK) == 0) return named;
    const int error = errno;
    throw Error(error == ENOENT ? Code::not_found : Code::permission_denied,
                fmt::format("{}={}: {}, expected the path of capstan-agent; correct or unset the variable",
                            kAgentVariable, named, std::strerror(error)));
  }
  // Beside the library in a Python package, in bin/ of a build directory, in libexec/ of an installation.
  const fs::path directory = library.parent_path();
  std::string searched;
  for (const char* place : {"capstan-agent", "../bin/capstan-agent", CAPSTAN_AGENT_FROM_LIBRARY}) {
    fs::path candidate = (directory / place).lexically_normal();
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    searched += (searched.empty() ? "" : ", ") + candidate.string();
  }
  throw Error(
      Code::not_found,
      fmt::format("capstan-agent: found none of {}, expected the program that supervises a rank; install "
                  "it, or set {} to its path",
                  searched, kAgentVariable));
}

}  // namespace cluster

namespace detail {

bool is_supervised() noexcept { return cluster::Heartbeat::watched() || cluster::AgentLink::is_passed(); }

bool needs_agent(const ClusterOptions& options, const std::vector<std::string>& command) {
  return !is_supervised() &&
         cluster::supervised_start(cluster::settings_with_arguments(options, command)).has_value();
}

void exec_under_agent(const ClusterOptions& options, const std::vector<std::string>& command) {
  if (command.empty()) {
    throw Error(Code::invalid_argument, "exec_under_agent: an empty command, expected that of this process");
  }
  const Settings settings = cluster::settings_with_arguments(options, command);
  if (is_supervised() || !cluster::supervised_start(settings)) {
    throw Error(Code::failed_precondition,
                "exec_under_agent: found a process that already has an agent, or needs none; call it only if "
                "needs_agent returns true");
  }
  if (mpi::was_started()) {
    throw Error(
        Code::failed_precondition,
        "this process has called MPI_Init, expected a process that has not: the agent of the rank "
        "initializes MPI; join the cluster before other code initializes MPI, or set --supervise off");
  }
  std::error_code error;
  const std::string library = library_path();
  const std::filesystem::path agent =
      cluster::find_agent(library.empty() ? std::filesystem::read_symlink("/proc/self/exe", error)
                                          : std::filesystem::path(library));
  std::vector<std::string> words{agent.string()};
  for (std::string& flag : flags_of(options, settings)) words.push_back(std::move(flag));
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  std::fflush(nullptr);
  execv(agent.c_str(), cluster::pointers_to(words).data());
  throw Error(errno == ENOENT ? Code::not_found : Code::permission_denied,
              fmt::format("{}: {}, expected an executable program; see {}", agent.string(),
                          std::strerror(errno), cluster::kAgentVariable));
}

}  // namespace detail
}  // namespace capstan
