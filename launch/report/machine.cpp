// machine.cpp -- tables of the files and commands that describe a host.
#include "launch/report/machine.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "base/command_output.hpp"
#include "capstan/version.hpp"
#include "launch/run/program_path.hpp"
#include "launch/version.hpp"

namespace capstan::launch::report {
namespace {

constexpr std::size_t kMaxFileBytes = 64 << 10;

constexpr std::array kSystemFiles{"/etc/os-release",
                                  "/proc/version",
                                  "/proc/loadavg",
                                  "/proc/meminfo",
                                  "/proc/self/limits",
                                  "/proc/self/cgroup",
                                  "/sys/fs/cgroup/cpu.max",
                                  "/sys/fs/cgroup/memory.max",
                                  "/sys/fs/cgroup/pids.max",
                                  "/sys/kernel/mm/transparent_hugepage/enabled",
                                  "/sys/kernel/mm/transparent_hugepage/defrag",
                                  "/sys/kernel/mm/transparent_hugepage/shmem_enabled",
                                  "/proc/sys/vm/nr_hugepages",
                                  "/proc/sys/vm/overcommit_memory",
                                  "/proc/sys/vm/max_map_count",
                                  "/proc/sys/kernel/shmmax",
                                  "/proc/sys/kernel/shmall",
                                  "/proc/sys/kernel/shmmni",
                                  "/proc/sys/kernel/numa_balancing",
                                  "/proc/sys/kernel/yama/ptrace_scope",
                                  "/proc/driver/nvidia/version"};

struct Command {
  std::vector<std::string> words;
  std::chrono::seconds limit{10};
};

const std::vector<Command>& system_commands() {
  static const std::vector<Command> commands{
      {{"lscpu"}},
      {{"df", "-h", "/dev/shm"}},
      {{"ucx_info", "-v"}},
      {{"ucx_info", "-d"}, std::chrono::seconds(40)},  // slow on a host with many devices
      {{"mpirun", "--version"}},
      {{"srun", "--version"}},
      {{"srun", "--mpi=list"}},
      {{"nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv"},
       std::chrono::seconds(30)},
  };
  return commands;
}

}  // namespace

std::string build_text() {
  const BuildInfo built = build_info();
  return fmt::format("{}  compiler {}, {}\n  CMake {}\n", version_text(), built.compiler,
                     built.compile_options, built.cmake_options);
}

std::string system_files_text() {
  std::string text;
  for (const char* path : kSystemFiles) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      text += fmt::format("{}: absent\n", path);
      continue;
    }
    std::string content(kMaxFileBytes, '\0');
    file.read(content.data(), static_cast<std::streamsize>(content.size()));
    content.resize(static_cast<std::size_t>(file.gcount()));
    while (!content.empty() && content.back() == '\n') content.pop_back();
    text += fmt::format("{}:{}{}\n", path, content.find('\n') == std::string::npos ? " " : "\n", content);
  }
  return text;
}

std::string system_commands_text() {
  std::string text;
  for (const Command& command : system_commands()) {
    const std::string line = fmt::format("{}", fmt::join(command.words, " "));
    if (run::program_error(command.words.front(), std::getenv("PATH")) != 0) {
      text += fmt::format("$ {}\nnot installed\n", line);
      continue;
    }
    const auto output = command_output(command.words, command.limit, StderrMode::captured);
    if (!output) {
      text += fmt::format("$ {}\nno result within {} s\n", line, command.limit.count());
    } else {
      text += fmt::format("$ {}\n{}", line, output->text);
      if (output->exit_code != 0) text += fmt::format("exit code {}\n", output->exit_code);
    }
  }
  return text;
}

}  // namespace capstan::launch::report
