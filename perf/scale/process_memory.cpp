// process_memory.cpp -- reads /proc/PID/status, /proc/PID/fd and /proc/self/stat.
#include "perf/scale/process_memory.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace capstan::perf {

std::optional<ProcessMemory> memory_of(std::int64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  ProcessMemory memory;
  bool found = false;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kib = 0;
    if (!(words >> name >> kib)) continue;
    if (name == "RssAnon:") memory.anonymous = kib * 1024;
    if (name == "RssShmem:") memory.shared = kib * 1024;
    if (name == "RssFile:") memory.files = kib * 1024;
    found = found || name == "RssAnon:";
  }
  return found ? std::optional(memory) : std::nullopt;
}

std::uint64_t open_files(std::int64_t pid) {
  std::error_code error;
  const std::filesystem::directory_iterator files(fmt::format("/proc/{}/fd", pid), error);
  return error ? 0 : static_cast<std::uint64_t>(std::distance(begin(files), end(files)));
}

double seconds_since_start() {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // The name in parentheses may contain any character; the start time is the 20th word after it, in clock
  // ticks since boot.
  std::istringstream words(text.substr(text.rfind(')') + 1));
  std::string word;
  for (int i = 0; i < 20; ++i) words >> word;
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double ticks = std::stod(word) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9 - ticks;
}

}  // namespace capstan::perf
