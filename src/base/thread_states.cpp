// thread_states.cpp -- reads /proc/PID/task/TID/{comm,stat,syscall}; see proc(5).
#include "base/thread_states.hpp"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace capstan {
namespace {

std::string read_all(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string first_line(const std::filesystem::path& path) {
  const std::string text = read_all(path);
  return text.substr(0, text.find('\n'));
}

/// The state follows the thread's name, which is in parentheses and may contain any character.
char state_in(const std::string& stat) {
  const std::size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && name_end + 2 < stat.size() ? stat[name_end + 2] : '?';
}

}  // namespace

std::string thread_states(pid_t process) {
  std::string text;
  std::error_code error;
  for (std::filesystem::directory_iterator task(fmt::format("/proc/{}/task", process), error), end;
       !error && task != end; task.increment(error)) {
    const std::filesystem::path& thread = task->path();
    const std::string stat = read_all(thread / "stat");
    if (stat.empty()) continue;  // the thread has ended
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", first_line(thread / "comm"), state_in(stat));
    const std::string call =
        first_line(thread / "syscall");  // "running", or a system call number and its arguments
    if (!call.empty() && std::isdigit(static_cast<unsigned char>(call[0])) != 0) {
      text += " in system call " + call.substr(0, call.find(' '));
    }
  }
  return text;
}

}  // namespace capstan
