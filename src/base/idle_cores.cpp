// idle_cores.cpp -- idle times from /proc/stat.
#include "base/idle_cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

namespace capstan {
namespace {

/// The kernel counts in ticks of 10 ms, so a shorter interval would be too coarse.
constexpr std::chrono::milliseconds kMinInterval{100};

}  // namespace

IdleCores::IdleCores() : measured_at_(std::chrono::steady_clock::now()), previous_(idle_seconds()) {}

/// Parses lines of /proc/stat such as "cpu3 user nice system idle iowait ...", in ticks.
std::vector<double> IdleCores::idle_seconds() const {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return {};  // fails on hosts with more than 1,024 cores
  const auto ticks = static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
  std::vector<double> seconds;
  std::ifstream file("/proc/stat");
  std::string name;
  while (file >> name && name.starts_with("cpu")) {
    double user = 0, nice = 0, system = 0, idle = 0, wait = 0;
    file >> user >> nice >> system >> idle >> wait;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    if (name.size() > 3 && CPU_ISSET(std::stoul(name.substr(3)), &allowed))
      seconds.push_back((idle + wait) / ticks);
  }
  return seconds;
}

double IdleCores::count() {
  const auto now = std::chrono::steady_clock::now();
  if (now - measured_at_ < kMinInterval) return idle_;
  const std::vector<double> seconds = idle_seconds();
  const double passed = std::chrono::duration<double>(now - std::exchange(measured_at_, now)).count();
  idle_ = 0;
  for (std::size_t i = 0; i < std::min(seconds.size(), previous_.size()); ++i)
    idle_ += std::clamp((seconds[i] - previous_[i]) / passed, 0.0, 1.0);
  previous_ = seconds;
  return idle_;
}

}  // namespace capstan
