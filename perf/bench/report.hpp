// report.hpp -- results as column text for awk and as JSON for plots.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace capstan::perf {

/// A measured value, its bound and its rival, all in `unit`.
struct Result {
  std::string name;        // case, unique in a program: "lookup dim=64 ids=zipf call=8192"
  std::string group;       // cases of one curve: "lookup dim=64 ids=zipf"
  std::uint64_t size = 0;  // abscissa of the curve
  std::string size_unit;
  std::string unit;
  bool less_is_better = false;
  bool verified = false;  // the value of an unverified result is not reported
  double median = 0;
  double p99 = 0;  // 99 % of the samples were at least this good
  std::optional<double> bound = {};
  std::string bound_name = {};
  std::optional<double> rival = {};
  std::string rival_name = {};

  /// Ratio to `other`: above 1 is better, for rates and times alike. nullopt if unverified or without
  /// `other`.
  std::optional<double> ratio_to(const std::optional<double>& other) const;
};

/// Returns `result` with a rate: `work` per sample (rows, bytes, calls) divided by the seconds per sample.
Result rate_result(Result result, double work, const std::vector<double>& seconds);
/// Returns `result` with a duration: seconds per sample times `scale`, such as 1e6 for microseconds.
Result time_result(Result result, double scale, const std::vector<double>& seconds);

class Report {
 public:
  /// Keeps only results whose name contains `only`.
  explicit Report(std::string only = {}) : only_(std::move(only)) {}

  void add(Result result) {
    if (result.name.find(only_) != std::string::npos) results_.push_back(std::move(result));
  }
  /// Sets the bound of a case. Ignores unknown cases.
  void set_bound(std::string_view name, double value, const std::string& bound_name);
  /// Sets the rival of a case if it is better than the rival that was set before. Ignores unknown cases.
  void set_better_rival(std::string_view name, double value, std::string rival_name);
  bool all_verified() const;
  const std::vector<Result>& results() const { return results_; }

  /// Prints the context as comment lines, then a table per group.
  void print(std::ostream& out, const nlohmann::json& context) const;
  /// {"context": ..., "results": [...]}
  nlohmann::json to_json(const nlohmann::json& context) const;
  /// A header line, and a line per result; texts are quoted, and a missing value is empty.
  void print_csv(std::ostream& out) const;

 private:
  std::string only_;
  std::vector<Result> results_;
};

}  // namespace capstan::perf
