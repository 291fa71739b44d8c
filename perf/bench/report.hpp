// report.hpp -- results as two-column text for awk and as JSON for plots.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::perf {

/// One figure beside its bound and its rival, all in `unit`.
struct Result {
  std::string name;        // the case, unique in a program: "lookup dim=64 ids=zipf call=8192"
  std::string group;       // cases that make one curve: "lookup dim=64 ids=zipf"
  std::uint64_t size = 0;  // where on the curve
  std::string size_unit;
  std::string unit;
  bool less_is_better = false;
  bool verified = false;  // a wrong answer has no figure
  double median = 0;
  double p99 = 0;  // the slow end: 99 % of samples were at least this good
  std::optional<double> bound = {};
  std::string bound_name = {};
  std::optional<double> rival = {};
  std::string rival_name = {};

  /// 1 is as good as the other, more is better, for rates and for times alike.
  std::optional<double> ratio_to(const std::optional<double>& other) const;
};

/// `work` a sample (rows, bytes, calls) over seconds a sample: a rate.
Result rate_result(Result result, double work, const std::vector<double>& seconds);
/// Seconds a sample, shown in another unit: `scale` is 1e6 for microseconds.
Result time_result(Result result, double scale, const std::vector<double>& seconds);

class Report {
 public:
  void add(Result result) { results_.push_back(std::move(result)); }
  /// Of several rivals of a case the best stays. Does nothing for a case that is not there.
  void set_better_rival(std::string_view name, double value, std::string rival_name);
  bool all_verified() const;
  const std::vector<Result>& results() const { return results_; }

  /// Comment lines, then a table a group: size, value, and further columns.
  void print(std::ostream& out, const nlohmann::json& context) const;
  /// {"context": ..., "results": [...]}
  nlohmann::json to_json(const nlohmann::json& context) const;

 private:
  std::vector<Result> results_;
};

}  // namespace capstan::perf
