// pair_judge.hpp -- what is to be thought of connections, and of how fast they are.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/pair_work.hpp"

namespace capstan::launch::doctor {

/// One finding for each kind of link: same host or another, way, transports. `has_adapter`: some host has an
/// active InfiniBand or RoCE port.
std::vector<Finding> judge_links(const std::vector<Link>& links, bool has_adapter);

/// One for the pairs of one host, one for those of two.
std::vector<Finding> judge_probes(const std::vector<Probe>& probes);

/// What a way should give, and who says so.
struct Expectation {
  double latency = 0;    ///< seconds, at most
  double bandwidth = 0;  ///< bytes a second, at least; 0: nobody can tell
  std::string source;
};
Expectation expectation_of(const Speed& speed);

/// The slowest pair of each kind of link.
std::vector<Finding> judge_speeds(const std::vector<Speed>& speeds);

/// Every pair that was measured, for --json.
nlohmann::json measurements(const std::vector<Speed>& speeds);

}  // namespace capstan::launch::doctor
