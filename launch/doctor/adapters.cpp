// adapters.cpp -- reads /sys/class/infiniband and /sys/class/net.
#include "launch/doctor/adapters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <system_error>

namespace capstan::launch::doctor {
namespace {

namespace fs = std::filesystem;

std::string line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Sorted entries of a directory; empty if it does not exist.
std::vector<fs::path> entries_of(const fs::path& directory) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error))
    entries.push_back(at->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

/// Parses the rate: "200 Gb/sec (4X HDR)" is 200.
std::optional<double> gigabits_in(const std::string& rate) {
  char* end = nullptr;
  const double value = std::strtod(rate.c_str(), &end);
  if (end == rate.c_str() || value <= 0 || rate.find("Gb/sec") == std::string::npos) return std::nullopt;
  return value;
}

}  // namespace

std::vector<AdapterPort> read_adapters(const fs::path& sys) {
  std::vector<AdapterPort> ports;
  for (const fs::path& adapter : entries_of(sys / "class/infiniband")) {
    for (const fs::path& port : entries_of(adapter / "ports")) {
      ports.push_back({adapter.filename().string() + ":" + port.filename().string(), line_of(port / "state"),
                       line_of(port / "rate"), line_of(port / "link_layer")});
    }
  }
  return ports;
}

std::optional<double> link_rate(const fs::path& sys, const std::string& device) {
  for (const AdapterPort& port : read_adapters(sys)) {
    if (port.name == device) return gigabits_in(port.rate);
  }
  std::ifstream file(sys / "class/net" / device / "speed");
  double megabits = 0;
  // A virtual device reports -1 or fails to read.
  if (!(file >> megabits) || megabits <= 0) return std::nullopt;
  return megabits / 1000;
}

Finding judge_adapters(const std::vector<AdapterPort>& ports) {
  if (ports.empty()) {
    return skip(
        "no InfiniBand or RoCE adapter in /sys/class/infiniband: UCX connects other hosts by active messages "
        "over TCP");
  }
  std::vector<std::string> texts;
  bool any = false;
  for (const AdapterPort& port : ports) {
    any = any || port.active();
    texts.push_back(fmt::format("{} (state {}, {}, {})", port.name, port.state, port.rate, port.link_layer));
  }
  const std::string observed = fmt::format("{}", fmt::join(texts, ", "));
  if (any) return pass(observed);
  return fail(observed, "no port is active; check ibstat, the cable and the subnet manager");
}

Finding check_adapters(const Request&) { return judge_adapters(read_adapters("/sys")); }

}  // namespace capstan::launch::doctor
