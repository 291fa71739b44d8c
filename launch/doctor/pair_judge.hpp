// pair_judge.hpp -- judges connections between ranks and their speed.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "launch/doctor/finding.hpp"
#include "launch/doctor/pair_tester.hpp"

namespace capstan::launch::doctor {

/// One finding per kind of link: same host or not, path, transports, and whether both ends could use RDMA.
/// `with_adapter`: hosts with an active InfiniBand or RoCE port.
std::vector<Finding> judge_links(const std::vector<Link>& links, const std::set<std::string>& with_adapter);

/// One finding per kind of link, about a probe that did not complete if there is one.
std::vector<Finding> judge_rma_probes(const std::vector<RmaProbe>& rma_probes);

/// Expected speed of a link, with the source of the numbers.
struct Expectation {
  double latency = 0;    ///< seconds, at most
  double bandwidth = 0;  ///< bytes per second, at least; 0: unknown
  std::string source;
};
Expectation expectation_of(const Speed& speed);

/// One finding per kind of link, about the pair with the lowest bandwidth.
std::vector<Finding> judge_speeds(const std::vector<Speed>& speeds);

/// All measured pairs, for --json.
nlohmann::json measurements(const std::vector<Speed>& speeds);

}  // namespace capstan::launch::doctor
