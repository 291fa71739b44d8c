// report.hpp -- formats the findings of all ranks as a table or JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"

namespace capstan::launch::doctor {

/// One line of the table: a finding and the ranks that share it.
struct ReportLine {
  Finding finding;
  std::vector<int> ranks = {};          ///< empty: a finding of the job
  std::vector<std::string> hosts = {};  ///< distinct hosts of `ranks`
};

/// Findings of one rank. Serialized and sent to rank 0.
struct RankFindings {
  int rank = 0;
  std::string host;
  std::vector<Finding> findings;
};

struct Report {
  int ranks = 1;
  std::vector<std::string> hosts = {};
  std::vector<ReportLine> lines = {};
  nlohmann::json measurements = nlohmann::json::array();  ///< of pairs; for --json

  /// Adds findings of ranks; equal ones share a line. text() and json() sort lines by check, then by
  /// severity.
  void add(const std::vector<RankFindings>& of_ranks);
  /// Adds a finding of the job.
  void add(const Finding& finding);

  std::size_t count(Verdict verdict) const;
  /// 3 (Exit::environment) if a check failed, else 0.
  int exit_code() const;
  /// `colored`: with verdicts in color, for a terminal.
  std::string text(bool colored = false) const;
  nlohmann::json json() const;
};

}  // namespace capstan::launch::doctor
