// top_table.cpp -- a header for the job, then a line per ps and per worker.
#include "launch/top_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "launch/progress.hpp"

namespace capstan::launch {
namespace {

using nlohmann::json;

constexpr double kFreshSeconds = 5;

std::string count_of(const json& number) {
  return number.is_number() ? short_count(number.get<double>()) : "-";
}

std::string time_of(const json& seconds) {
  if (!seconds.is_number() || seconds.get<double>() <= 0) return "-";
  const double time = seconds.get<double>();
  if (time < 1e-3) return fmt::format("{:.3g}us", time * 1e6);
  return time < 1 ? fmt::format("{:.3g}ms", time * 1e3) : fmt::format("{:.3g}s", time);
}

std::string duration_text(double seconds) {
  return short_time(std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3)));
}

std::vector<std::string> header(const json& metrics) {
  const json& functions = metrics["functions"];
  const json& lost = metrics["lost"];
  std::vector<std::string> lines;
  lines.push_back(fmt::format("up {}   {} workers, {} ps   lost: {} workers, {} ps",
                              duration_text(metrics["elapsed"]), metrics["workers"].get<int>(),
                              metrics["ps"].size(), lost["workers"].get<int>(), lost["ps"].get<int>()));
  lines.push_back(fmt::format(
      "functions: {}/s, {} ended, {} queued, {} with workers, {} wait; p50 {}, p99 {}",
      count_of(functions["per_second"]), count_of(functions["ended"]), count_of(functions["queued"]),
      count_of(functions["running"]), count_of(functions["waiting"]), time_of(functions["execution"]["p50"]),
      time_of(functions["execution"]["p99"])));
  const auto call = [&](const char* name) {
    const json& of = metrics[name];
    return fmt::format("{}: {} rows/s, {}B/s, p50 {}, p99 {}", name, count_of(of["rows_per_second"]),
                       count_of(of["bytes_per_second"]), time_of(of["p50"]), time_of(of["p99"]));
  };
  lines.push_back(call("pull"));
  lines.push_back(call("push"));
  if (const json& hottest = metrics["hottest"]; !hottest.is_null()) {
    lines.push_back(fmt::format("hottest shard: {} {} on ps {}, {:.0f}% of the rows",
                                hottest["variable"].get<std::string>(), hottest["shard"].get<int>(),
                                hottest["ps"].get<int>(), 100 * hottest["share"].get<double>()));
  }
  for (const json& group : metrics["staleness"]) {
    lines.push_back(fmt::format("group {}: bound {}, {} steps, workers {} apart",
                                group["group"].get<std::string>(), group["bound"].get<int>(),
                                group["steps"].get<std::uint64_t>(), group["spread"].get<std::uint64_t>()));
  }
  if (const json& saves = metrics["checkpoints"]; saves["saved"] > 0) {
    lines.push_back(fmt::format("checkpoints: {}, the last in {}", saves["saved"].get<int>(),
                                time_of(saves["last_seconds"])));
  }
  std::string scalars;
  for (const auto& [name, value] : metrics["scalars"].items()) {
    if (value.is_number())
      scalars += fmt::format("{}{} {:.6g}", scalars.empty() ? "" : "  ", name, value.get<double>());
  }
  if (!scalars.empty()) lines.push_back(scalars);
  return lines;
}

std::string state_of(const json& rank) { return rank["lost"] == true ? " LOST" : ""; }

std::vector<std::string> workers(const json& metrics) {
  std::vector<std::string> lines{
      fmt::format("{:>5} {:<11}{:<14}{:>12}{:>8}{:>7}{:>8}{:>12}{:>9}{:>12}{:>9}{:>8}{:>8}", "rank", "",
                  "host", "functions/s", "ended", "holds", "behind", "pull rows/s", "p99", "push rows/s",
                  "p99", "cpu s", "memory")};
  if (!metrics.contains("each_worker")) return lines;
  for (const json& worker : metrics["each_worker"]) {
    lines.push_back(
        fmt::format("{:>5} {:<11}{:<14}{:>12}{:>8}{:>7}{:>8}{:>12}{:>9}{:>12}{:>9}{:>8}{:>8}{}",
                    worker["rank"].get<int>(), fmt::format("worker {}", worker["worker"].get<int>()),
                    worker["host"].get<std::string>(), count_of(worker["per_second"]),
                    count_of(worker["ended"]), count_of(worker["held"]), count_of(worker["behind"]),
                    count_of(worker["pull"]["rows_per_second"]), time_of(worker["pull"]["p99"]),
                    count_of(worker["push"]["rows_per_second"]), time_of(worker["push"]["p99"]),
                    count_of(worker["cpu_seconds"]), count_of(worker["peak_rss_bytes"]), state_of(worker)));
  }
  return lines;
}

std::vector<std::string> ps(const json& metrics) {
  std::vector<std::string> lines{fmt::format(
      "{:>5} {:<11}{:<14}{:>12}{:>8}{:>7}{:>8}{:>12}{:>9}{:>12}{:>9}{:>8}{:>8}", "rank", "", "host",
      "push rows/s", "pushes", "shards", "bytes", "pushed B/s", "", "rows sent", "", "cpu s", "memory")};
  for (const json& one : metrics["ps"]) {
    lines.push_back(fmt::format(
        "{:>5} {:<11}{:<14}{:>12}{:>8}{:>7}{:>8}{:>12}{:>9}{:>12}{:>9}{:>8}{:>8}{}", one["rank"].get<int>(),
        fmt::format("ps {}", one["ps"].get<int>()), one["host"].get<std::string>(),
        count_of(one["rows_pushed_per_second"]), count_of(one["pushes"]), count_of(one["shards"]),
        count_of(one["bytes"]), count_of(one["bytes_pushed_per_second"]), "", count_of(one["rows_sent"]), "",
        count_of(one["cpu_seconds"]), count_of(one["peak_rss_bytes"]), state_of(one)));
  }
  return lines;
}

}  // namespace

bool has_fresh_rates(const json& metrics) {
  const double seconds = metrics.value("seconds", 0.0);
  return seconds > 0 && (seconds < kFreshSeconds || metrics.value("elapsed", 0.0) > seconds);
}

std::string top_table(const json& metrics, const Screen& screen) {
  std::vector<std::string> lines = header(metrics);
  for (const auto& more : {ps(metrics), workers(metrics)}) {
    lines.emplace_back();
    lines.insert(lines.end(), more.begin(), more.end());
  }
  if (screen.lines > 2 && lines.size() > screen.lines - 1) {
    const std::size_t shown = screen.lines - 2;
    const std::size_t omitted = lines.size() - shown;
    lines.resize(shown);
    lines.push_back(fmt::format("... {} more lines; capstan top --once prints all", omitted));
  }
  std::string text;
  for (const std::string& line : lines) {
    text += screen.width > 0 ? line.substr(0, screen.width - 1) : line;
    text += '\n';
  }
  return text;
}

}  // namespace capstan::launch
