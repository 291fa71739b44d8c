// report.hpp -- the findings of all ranks as one table, or as JSON.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"

namespace capstan::launch::doctor {

/// One line of the table: what these ranks found alike.
struct Line {
  Finding finding;
  std::vector<int> ranks = {};          ///< empty: of the job as a whole
  std::vector<std::string> hosts = {};  ///< theirs, each once
};

/// What one rank found.
struct RankFindings {
  int rank = 0;
  std::string host;
  std::vector<Finding> findings;
};

struct Report {
  int ranks = 1;
  std::vector<std::string> hosts = {};
  std::vector<Line> lines = {};
  nlohmann::json measurements = nlohmann::json::array();  ///< of pairs, for --json

  /// Puts findings together that are alike, in the order of the table of checks, the heaviest of one check
  /// first.
  void add(const std::vector<RankFindings>& of_ranks);
  /// Of the job as a whole.
  void add(const Finding& finding);

  std::size_t count(Verdict verdict) const;
  /// 0 without `fail`, 3 (docs/errors.md: environment) with one.
  int exit_code() const;
  std::string text() const;
  nlohmann::json json() const;
};

}  // namespace capstan::launch::doctor
