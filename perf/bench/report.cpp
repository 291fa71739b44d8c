// report.cpp -- text and JSON form of a report.
#include "perf/bench/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "perf/bench/statistics.hpp"

namespace capstan::perf {
namespace {

using nlohmann::json;

/// Three decimals below 10 and fewer above, so that values from 1 to 9999 have four significant digits. No
/// exponent, so that columns align.
std::string format_value(const std::optional<double>& value) {
  if (!value) return "-";
  const double magnitude = *value < 0 ? -*value : *value;
  const int decimals = magnitude >= 1000 ? 0 : magnitude >= 100 ? 1 : magnitude >= 10 ? 2 : 3;
  return fmt::format("{:.{}f}", *value, decimals);
}

json number_or_null(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }
json string_or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

}  // namespace

std::optional<double> Result::ratio_to(const std::optional<double>& other) const {
  if (!other || !verified || *other <= 0 || median <= 0) return std::nullopt;
  return less_is_better ? *other / median : median / *other;
}

Result rate_result(Result result, double work, const std::vector<double>& seconds) {
  result.median = work / perf::median(seconds);
  result.p99 = work / perf::p99(seconds);
  return result;
}

Result time_result(Result result, double scale, const std::vector<double>& seconds) {
  result.less_is_better = true;
  result.median = scale * perf::median(seconds);
  result.p99 = scale * perf::p99(seconds);
  return result;
}

void Report::set_bound(std::string_view name, double value, const std::string& bound_name) {
  for (Result& result : results_) {
    if (result.name != name) continue;
    result.bound = value;
    result.bound_name = bound_name;
  }
}

void Report::set_better_rival(std::string_view name, double value, std::string rival_name) {
  for (Result& result : results_) {
    if (result.name != name) continue;
    if (result.rival) {
      const bool better = result.less_is_better ? value < *result.rival : value >= *result.rival;
      if (!better) continue;
    }
    result.rival = value;
    result.rival_name = rival_name;
  }
}

bool Report::all_verified() const {
  return std::all_of(results_.begin(), results_.end(), [](const Result& r) { return r.verified; });
}

void Report::print(std::ostream& out, const json& context) const {
  for (const auto& [name, value] : context.items()) {
    out << fmt::format("# {}: {}\n", name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  std::string group;
  for (const Result& r : results_) {
    if (r.group + r.unit != group) {
      group = r.group + r.unit;
      out << fmt::format("#\n# {}, {}\n", r.group, r.unit);
      if (!r.bound_name.empty()) out << "# bound: " << r.bound_name << '\n';
      if (!r.rival_name.empty()) out << "# rival of the first line: " << r.rival_name << '\n';
      out << fmt::format("# {:<12} {:>14} {:>14} {:>14} {:>8} {:>14} {:>8}  {}\n",
                         r.size_unit.empty() ? "size" : r.size_unit, r.unit, "p99", "bound", "of bound",
                         "rival", "of rival", "answer");
    }
    const auto if_verified = [&](double value) {
      return format_value(r.verified ? std::optional(value) : std::nullopt);
    };
    out << fmt::format("{:<14} {:>14} {:>14} {:>14} {:>8} {:>14} {:>8}  {}\n", r.size, if_verified(r.median),
                       if_verified(r.p99), format_value(r.bound), format_value(r.ratio_to(r.bound)),
                       format_value(r.rival), format_value(r.ratio_to(r.rival)),
                       r.verified ? "verified" : "WRONG");
  }
}

void Report::print_csv(std::ostream& out) const {
  const auto text = [](std::string value) {
    for (std::size_t at = 0; (at = value.find('"', at)) != value.npos; at += 2) value.insert(at, 1, '"');
    return '"' + value + '"';
  };
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{}", *value) : std::string();
  };
  out << "case,size,size_unit,unit,median,p99,bound,bound_name,rival,rival_name,verified\n";
  for (const Result& r : results_) {
    const auto if_verified = [&](double value) {
      return number(r.verified ? std::optional(value) : std::nullopt);
    };
    out << fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", text(r.name), r.size, text(r.size_unit),
                       text(r.unit), if_verified(r.median), if_verified(r.p99), number(r.bound),
                       text(r.bound_name), number(r.rival), text(r.rival_name), r.verified);
  }
}

json Report::to_json(const json& context) const {
  json list = json::array();
  for (const Result& r : results_) {
    const auto if_verified = [&](double value) { return r.verified ? json(value) : json(nullptr); };
    list.push_back({{"case", r.name},
                    {"group", r.group},
                    {"size", r.size},
                    {"size_unit", r.size_unit},
                    {"unit", r.unit},
                    {"less_is_better", r.less_is_better},
                    {"median", if_verified(r.median)},
                    {"p99", if_verified(r.p99)},
                    {"bound", number_or_null(r.bound)},
                    {"bound_name", string_or_null(r.bound_name)},
                    {"ratio_to_bound", number_or_null(r.ratio_to(r.bound))},
                    {"rival_name", string_or_null(r.rival_name)},
                    {"rival", number_or_null(r.rival)},
                    {"ratio_to_rival", number_or_null(r.ratio_to(r.rival))},
                    {"verified", r.verified}});
  }
  return {{"context", context}, {"results", list}};
}

}  // namespace capstan::perf
