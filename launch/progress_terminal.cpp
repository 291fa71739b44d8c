// progress_terminal.cpp -- finds the terminal through /proc and /dev/tty.
#include "launch/progress_terminal.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <system_error>

#include "base/file_descriptor.hpp"

namespace capstan::launch {
namespace {

constexpr int kMaxAncestors = 16;

/// Fields of /proc/PID/stat that follow the name of the program, which may have spaces.
struct Ancestor {
  int parent = 0;
  int group = 0;
  int terminal = 0;           // device number of its controlling terminal; 0: none
  int foreground_group = -1;  // foreground process group of `terminal`
};

Ancestor read_ancestor(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  Ancestor found;
  char state = 0;
  int session = 0;
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return found;
  std::sscanf(line.c_str() + name_end + 1, " %c %d %d %d %d %d", &state, &found.parent, &found.group,
              &session, &found.terminal, &found.foreground_group);
  return found;
}

std::string standard_error_of(int pid) { return "/proc/" + std::to_string(pid) + "/fd/2"; }

bool is_pipe(const std::string& file) {
  std::error_code error;
  const std::string target = std::filesystem::read_symlink(file, error).string();
  return target.starts_with("pipe:") || target.starts_with("socket:");
}

/// Device number of the file, in the encoding of /proc/PID/stat; 0 if it is no device.
int device_of(const std::string& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0 || !S_ISCHR(found.st_mode)) return 0;
  const unsigned minor_number = minor(found.st_rdev);
  return static_cast<int>((minor_number & 0xffU) | (major(found.st_rdev) << 8U) |
                          ((minor_number & ~0xffU) << 12U));
}

bool is_plain_output() {
  const char* terminal = std::getenv("TERM");
  return std::getenv("CI") != nullptr || (terminal != nullptr && std::string_view(terminal) == "dumb");
}

}  // namespace

bool launcher_has_terminal() {
  Ancestor process = read_ancestor(::getpid());
  const int terminal = process.terminal;
  for (int i = 0; i < kMaxAncestors && terminal != 0 && process.parent > 1; ++i) {
    const std::string file = standard_error_of(process.parent);
    process = read_ancestor(process.parent);
    if (is_pipe(file)) continue;
    return device_of(file) == terminal && process.group == process.foreground_group;
  }
  return false;
}

ProgressTerminal::ProgressTerminal(std::string_view when) : options_(ProgressOptions::for_standard_error()) {
  if (when == "off" || (when == "auto" && is_plain_output())) options_.terminal = false;
  if (when == "off" || options_.terminal || (when == "auto" && is_plain_output())) return;
  if (when == "auto" && !launcher_has_terminal()) return;
  tty_.open("/dev/tty");
  if (!tty_.is_open()) return;  // the process has no controlling terminal
  options_.terminal = true;
  options_.summary_sink = &std::cerr;
  const FileDescriptor file(::open("/dev/tty", O_WRONLY | O_NOCTTY | O_CLOEXEC));
  winsize size{};
  if (::ioctl(file.get(), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) options_.width = size.ws_col;
}

std::ostream& ProgressTerminal::stream() { return tty_.is_open() ? tty_ : std::cerr; }

ProgressOptions ProgressTerminal::options() const { return options_; }

}  // namespace capstan::launch
