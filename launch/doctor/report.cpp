// report.cpp -- merges equal findings and formats the report.
#include "launch/doctor/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "capstan/version.hpp"
#include "launch/doctor/checks.hpp"
#include "launch/exit_codes.hpp"

namespace capstan::launch::doctor {
namespace {

/// Number of hosts that a line names.
constexpr std::size_t kMaxNamedHosts = 6;
constexpr std::size_t kIndent = 21;

std::size_t order_of(std::string_view check) {
  const auto all = checks();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Check& one) { return one.name == check; });
  return static_cast<std::size_t>(found - all.begin());
}

bool share_line(const Finding& a, const Finding& b) {
  const auto key = [](const Finding& finding) {
    return std::tie(finding.check, finding.verdict,
                    finding.group_key.empty() ? finding.observed : finding.group_key, finding.fix);
  };
  return key(a) == key(b);
}

std::string host_list(const std::vector<std::string>& hosts) {
  const std::size_t count = std::min(hosts.size(), kMaxNamedHosts);
  const auto end = hosts.begin() + static_cast<std::ptrdiff_t>(count);
  return fmt::format("{}{}", fmt::join(hosts.begin(), end, ", "),
                     count < hosts.size() ? fmt::format(" and {} more", hosts.size() - count) : "");
}

/// Formats " [2 ranks on n1, n2]"; "" in a job of one rank, or for a finding of the job.
std::string ranks_text(const ReportLine& line, int ranks) {
  if (ranks < 2 || line.ranks.empty()) return {};
  const std::string subject = line.ranks.size() == 1 ? fmt::format("rank {}", line.ranks.front())
                                                     : fmt::format("{} ranks", line.ranks.size());
  return fmt::format(" [{} on {}]", subject, host_list(line.hosts));
}

std::vector<const ReportLine*> sorted(const std::vector<ReportLine>& lines) {
  std::vector<const ReportLine*> ordered;
  for (const ReportLine& line : lines) ordered.push_back(&line);
  std::stable_sort(ordered.begin(), ordered.end(), [](const ReportLine* a, const ReportLine* b) {
    const std::size_t order_a = order_of(a->finding.check);
    const std::size_t order_b = order_of(b->finding.check);
    return order_a != order_b ? order_a < order_b : a->finding.verdict > b->finding.verdict;
  });
  return ordered;
}

/// Formats PASS in green, WARN in yellow, FAIL in red, and SKIP without a color.
std::string in_color(Verdict verdict) {
  const int color = verdict == Verdict::pass   ? 32
                    : verdict == Verdict::warn ? 33
                    : verdict == Verdict::fail ? 31
                                               : 0;
  return color == 0 ? std::string(to_string(verdict))
                    : fmt::format("\x1b[{}m{}\x1b[0m", color, to_string(verdict));
}

}  // namespace

void Report::add(const std::vector<RankFindings>& of_ranks) {
  for (const RankFindings& rank : of_ranks) {
    for (const Finding& finding : rank.findings) {
      auto line = std::find_if(lines.begin(), lines.end(), [&](const ReportLine& one) {
        return !one.ranks.empty() && share_line(one.finding, finding);
      });
      if (line == lines.end()) line = lines.insert(lines.end(), ReportLine{finding});
      line->ranks.push_back(rank.rank);
      if (std::find(line->hosts.begin(), line->hosts.end(), rank.host) == line->hosts.end())
        line->hosts.push_back(rank.host);
    }
  }
}

void Report::add(const Finding& finding) { lines.push_back({finding}); }

std::size_t Report::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::count_if(
      lines.begin(), lines.end(), [&](const ReportLine& line) { return line.finding.verdict == verdict; }));
}

int Report::exit_code() const {
  return static_cast<int>(count(Verdict::fail) > 0 ? Exit::environment : Exit::ok);
}

std::string Report::text(bool colored) const {
  std::string text = fmt::format("capstan doctor {}: {} {} on {}\n\n", CAPSTAN_VERSION_STRING, ranks,
                                 ranks == 1 ? "process" : "ranks", host_list(hosts));
  for (const ReportLine* line : sorted(lines)) {
    const Finding& finding = line->finding;
    text += fmt::format("{}  {:<{}}{}{}\n", colored ? in_color(finding.verdict) : to_string(finding.verdict),
                        finding.check, kIndent - 6, finding.observed, ranks_text(*line, ranks));
    if (!finding.fix.empty()) text += fmt::format("{:<{}}fix: {}\n", "", kIndent, finding.fix);
  }
  return text + fmt::format("\n{} PASS, {} WARN, {} FAIL, {} SKIP\n", count(Verdict::pass),
                            count(Verdict::warn), count(Verdict::fail), count(Verdict::skip));
}

nlohmann::json Report::json() const {
  nlohmann::json checks = nlohmann::json::array();
  for (const ReportLine* line : sorted(lines)) {
    nlohmann::json one{{"check", line->finding.check},
                       {"verdict", to_string(line->finding.verdict)},
                       {"observed", line->finding.observed}};
    if (!line->finding.fix.empty()) one["fix"] = line->finding.fix;
    if (!line->ranks.empty()) one["ranks"] = line->ranks;
    if (!line->hosts.empty()) one["hosts"] = line->hosts;
    checks.push_back(std::move(one));
  }
  return {{"version", CAPSTAN_VERSION_STRING},
          {"ranks", ranks},
          {"hosts", hosts},
          {"checks", std::move(checks)},
          {"measurements", measurements},
          {"exit_code", exit_code()}};
}

}  // namespace capstan::launch::doctor
