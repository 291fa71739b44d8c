// top_table.cpp -- a header for the job, then a line per ps and per worker, each of at most 79 characters.
#include "launch/top_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "launch/units.hpp"

namespace capstan::launch {
namespace {

using nlohmann::json;

constexpr double kFreshSeconds = 5;
constexpr std::size_t kColumns = 79;  // some terminals wrap when the last column is written

std::string count_of(const json& number) {
  return number.is_number() ? short_count(number.get<double>()) : "-";
}

std::string bytes_of(const json& number) {
  return number.is_number() ? size_text(number.get<double>()) : "-";
}

std::string time_of(const json& seconds) {
  return seconds.is_number() && seconds.get<double>() > 0 ? seconds_text(seconds.get<double>()) : "-";
}

std::string plural(int count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// Appends `items`, separated by commas. The first line starts with `label`, the others are indented.
void add_wrapped(std::vector<std::string>& lines, std::string_view label,
                 const std::vector<std::string>& items) {
  std::string line = fmt::format("{:<11}", label);
  const std::size_t indent = line.size();
  for (const std::string& item : items) {
    if (line.size() > indent && line.size() + 3 + item.size() > kColumns) {  // a comma may follow
      lines.push_back(line + ",");
      line.assign(indent, ' ');
    }
    line += (line.size() > indent ? ", " : "") + item;
  }
  if (line.size() > indent) lines.push_back(line);
}

std::vector<std::string> header(const json& metrics, const std::string& progress) {
  const json& functions = metrics["functions"];
  const json& lost = metrics["lost"];
  std::vector<std::string> lines;
  const double elapsed = metrics["elapsed"];
  lines.push_back(fmt::format("up {}{}{}",
                              short_time(std::chrono::milliseconds(static_cast<std::int64_t>(elapsed * 1e3))),
                              progress.empty() ? "" : ", ", progress));
  lines.push_back(fmt::format("{}, {} ps; lost: {}, {} ps", plural(metrics["workers"].get<int>(), "worker"),
                              metrics["ps"].size(), plural(lost["workers"].get<int>(), "worker"),
                              lost["ps"].get<int>()));
  const json& execution = functions["execution"];
  add_wrapped(lines, "functions",
              {count_of(functions["per_second"]) + "/s", count_of(functions["ended"]) + " ended",
               count_of(functions["queued"]) + " queued", count_of(functions["running"]) + " running",
               count_of(functions["waiting"]) + " waiting", "p50 " + time_of(execution["p50"]),
               "p99 " + time_of(execution["p99"])});
  for (const char* name : {"pull", "push"}) {
    const json& of = metrics[name];
    add_wrapped(lines, name,
                {count_of(of["rows_per_second"]) + " rows/s", bytes_of(of["bytes_per_second"]) + "/s",
                 "p50 " + time_of(of["p50"]), "p99 " + time_of(of["p99"])});
  }
  if (const json& hottest = metrics["hottest"]; !hottest.is_null()) {
    add_wrapped(
        lines, "hottest",
        {fmt::format("{} shard {}", hottest["variable"].get<std::string>(), hottest["shard"].get<int>()),
         fmt::format("ps {}", hottest["ps"].get<int>()),
         fmt::format("{:.0f} % of the rows", 100 * hottest["share"].get<double>())});
  }
  for (const json& table : metrics["tables"]) {
    add_wrapped(lines, "table",
                {table["table"].get<std::string>(), count_of(table["keys"]) + " keys",
                 fmt::format("{:.0f} % full", 100 * table["load"].get<double>()),
                 size_text(table["row_bytes"].get<double>() + table["index_bytes"].get<double>()),
                 count_of(table["evicted"]) + " evicted", count_of(table["refused"]) + " refused"});
  }
  for (const json& group : metrics["staleness"]) {
    add_wrapped(lines, "group",
                {group["group"].get<std::string>(), fmt::format("bound {}", group["bound"].get<int>()),
                 fmt::format("{} steps", group["steps"].get<std::uint64_t>()),
                 fmt::format("workers {} apart", group["spread"].get<std::uint64_t>())});
  }
  if (const json& saves = metrics["checkpoints"]; saves["saved"] > 0) {
    add_wrapped(lines, "saves",
                {fmt::format("{} saved", saves["saved"].get<int>()),
                 "the last in " + time_of(saves["last_seconds"])});
  }
  std::vector<std::string> scalars;
  for (const auto& [name, value] : metrics["scalars"].items()) {
    if (value.is_number()) scalars.push_back(fmt::format("{} {:.6g}", name, value.get<double>()));
  }
  add_wrapped(lines, "scalars", scalars);
  return lines;
}

std::string row(std::string_view rank, std::string_view name, std::string_view host,
                const std::vector<std::string>& cells) {
  std::string line = fmt::format("{:>5} {:<11} {:<9.9}", rank, name, host);
  for (std::size_t i = 0; i < cells.size(); ++i) line += fmt::format(" {:>{}}", cells[i], i == 2 ? 6 : 8);
  return line;
}

std::string row(const json& rank, const char* role, std::vector<std::string> cells) {
  if (rank["lost"] == true) cells.front() = "LOST";
  return row(std::to_string(rank["rank"].get<int>()), fmt::format("{} {}", role, rank[role].get<int>()),
             rank["host"].get<std::string>(), cells);
}

std::vector<std::string> workers(const json& metrics) {
  std::vector<std::string> lines{
      row("rank", "", "host", {"func/s", "ended", "behind", "pull/s", "push/s", "memory"})};
  if (!metrics.contains("each_worker")) return lines;
  for (const json& worker : metrics["each_worker"]) {
    lines.push_back(row(worker, "worker",
                        {count_of(worker["per_second"]), count_of(worker["ended"]),
                         count_of(worker["behind"]), count_of(worker["pull"]["rows_per_second"]),
                         count_of(worker["push"]["rows_per_second"]), bytes_of(worker["peak_rss_bytes"])}));
  }
  return lines;
}

std::vector<std::string> ps(const json& metrics) {
  std::vector<std::string> lines{
      row("rank", "", "host", {"push/s", "bytes/s", "shards", "pushes", "size", "memory"})};
  for (const json& one : metrics["ps"]) {
    lines.push_back(row(one, "ps",
                        {count_of(one["rows_pushed_per_second"]), bytes_of(one["bytes_pushed_per_second"]),
                         count_of(one["shards"]), count_of(one["pushes"]), bytes_of(one["bytes"]),
                         bytes_of(one["peak_rss_bytes"])}));
  }
  return lines;
}

}  // namespace

std::string EpochProgress::text(const json& metrics) {
  const json& scalars = metrics["scalars"];
  if (epochs_ <= 0 || !scalars.contains("epoch") || !scalars["epoch"].is_number()) return "";
  const double epoch = std::clamp<double>(scalars["epoch"].get<double>(), 0, epochs_);
  const double elapsed = metrics["elapsed"];
  if (!first_) first_ = resumed_ ? Sample{epoch, elapsed} : Sample{0, 0};
  std::string text = fmt::format("{:.0f} % done", std::floor(100 * epoch / epochs_));
  if (epoch <= first_->epoch || elapsed <= first_->elapsed) return text;
  const double left = (epochs_ - epoch) * (elapsed - first_->elapsed) / (epoch - first_->epoch);
  return text + ", " + short_time(std::chrono::milliseconds(std::llround(std::min(left, 1e9) * 1e3))) +
         " left";
}

bool has_fresh_rates(const json& metrics) {
  const double seconds = metrics.value("seconds", 0.0);
  return seconds > 0 && (seconds < kFreshSeconds || metrics.value("elapsed", 0.0) > seconds);
}

std::string top_table(const json& metrics, const Screen& screen, const std::string& progress) {
  std::vector<std::string> lines = header(metrics, progress);
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
