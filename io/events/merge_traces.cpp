// merge_traces.cpp -- converts the time of each line to the coordinator's clock.
#include "io/events/merge_traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "capstan/error.hpp"
#include "io/file.hpp"
#include "io/output_file.hpp"

namespace capstan::io {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kTime = "{\"ts\":";
constexpr std::string_view kRank = ",\"pid\":";
constexpr std::string_view kClocks = "clocks.json";

std::vector<fs::path> traces_in(const fs::path& directory) {
  std::vector<fs::path> paths;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory, none)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("rank-") && name.ends_with(".json")) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

struct Line {
  double time;  // microseconds
  int rank;
  std::string_view rest;  // from ,"pid" on
  /// Returns true for a metadata record, such as a process name, which has no time.
  bool is_metadata() const { return rest.find("\"ph\":\"M\"") != rest.npos; }
};

/// Returns nothing for a truncated line.
std::optional<Line> parse(std::string_view text) {
  Line line{};
  if (!text.starts_with(kTime) || !text.ends_with("}}")) return std::nullopt;
  text.remove_prefix(kTime.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), line.time);
  line.rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc() || !line.rest.starts_with(kRank)) return std::nullopt;
  const char* digits = line.rest.data() + kRank.size();
  if (std::from_chars(digits, line.rest.data() + line.rest.size(), line.rank).ec != std::errc())
    return std::nullopt;
  return line;
}

template <class Use>
void for_each_line(const fs::path& path, const Use& use) {
  std::ifstream in(path);
  for (std::string text; std::getline(in, text);) {
    if (const auto line = parse(text)) use(*line);
  }
}

}  // namespace

void write_clocks(const fs::path& directory, const std::map<int, ClockOffset>& clocks) {
  json all = json::object();
  for (const auto& [rank, clock] : clocks)
    all[std::to_string(rank)] = {{"ahead_ns", clock.ahead}, {"error_ns", clock.error}};
  OutputFile file(directory / kClocks, true);
  file.append(all.dump(2) + "\n");
  file.publish();
}

std::map<int, ClockOffset> read_clocks(const fs::path& directory) {
  std::map<int, ClockOffset> clocks;
  std::error_code none;
  if (!fs::exists(directory / kClocks, none)) return clocks;
  const json all = try_parse_json(read_whole_file(directory / kClocks));
  if (!all.is_object()) return clocks;
  for (const auto& [rank, clock] : all.items())
    clocks[std::stoi(rank)] = {clock.value("ahead_ns", std::int64_t{0}),
                               clock.value("error_ns", std::int64_t{0})};
  return clocks;
}

std::uint64_t bytes_of_traces(const fs::path& directory) {
  std::uint64_t bytes = 0;
  std::error_code none;
  for (const fs::path& path : traces_in(directory)) bytes += fs::file_size(path, none);
  return bytes;
}

MergedTrace merge_traces(const fs::path& run_dir) {
  const fs::path directory = run_dir / "trace";
  const std::vector<fs::path> paths = traces_in(directory);
  if (paths.empty()) {
    throw Error(Code::not_found,
                fmt::format("no traces in {}; run the job with --run-dir {} --trace to record them",
                            directory.string(), run_dir.string()));
  }
  const auto clocks = read_clocks(directory);
  const auto time_of = [&](const Line& line) {
    const auto clock = clocks.find(line.rank);
    return line.time - (clock == clocks.end() ? 0 : static_cast<double>(clock->second.ahead) * 1e-3);
  };
  double first = std::numeric_limits<double>::max();
  for (const fs::path& path : paths)
    for_each_line(path, [&](const Line& line) {
      if (!line.is_metadata()) first = std::min(first, time_of(line));
    });

  MergedTrace merged{run_dir / "trace.json", 0, static_cast<int>(paths.size())};
  OutputFile file(merged.path, true);
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  bool any = false;
  for (const fs::path& path : paths) {
    for_each_line(path, [&](const Line& line) {
      const double time = line.is_metadata() ? 0 : time_of(line) - first;
      text += fmt::format("{}{}{:.3f}{}", any ? ",\n" : "", kTime, time, line.rest);
      any = true;
      if (!line.is_metadata()) ++merged.events;
      if (text.size() < (1 << 20)) return;
      file.append(text);
      text.clear();
    });
  }
  file.append(text + "\n]}\n");
  file.publish();
  return merged;
}

}  // namespace capstan::io
