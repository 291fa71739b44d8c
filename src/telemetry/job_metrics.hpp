// job_metrics.hpp -- what a job has done until now, and the texts made of it: docs/metrics.md has every
// field.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "capstan/detail/coordinator_statistics.hpp"
#include "cluster/traffic.hpp"
#include "protocol/report.hpp"
#include "strategy/save_times.hpp"

namespace capstan::telemetry {

/// Of the process that has the index now.
struct WorkerMetrics {
  int index = 0;
  int rank = 0;
  std::string host;
  bool lost = false;
  std::uint64_t ended = 0;  // functions
  std::uint64_t held = 0;   // functions handed to it that have not ended
  cluster::TrafficMetrics traffic = {};
  cluster::ProcessUse use = {};
  bool reported = false;
};

struct PsMetrics {
  int index = 0;
  int rank = 0;
  std::string host;
  bool lost = false;
  protocol::PsReport report = {};  // statistics: of all processes that had this place
  bool reported = false;
};

/// All counts are since the coordinator's start.
struct JobMetrics {
  double time = 0;               // seconds since 1970
  double elapsed = 0;            // seconds since the coordinator's start
  int coordinator_restarts = 0;  // how often the coordinator has been started again
  CoordinatorStatistics functions;
  cluster::TrafficMetrics traffic;  // of all workers that there have been, and of the coordinator
  std::vector<WorkerMetrics> workers;
  std::vector<PsMetrics> ps;
  std::vector<std::string> groups;  // names of update groups, by number from 1 on
  std::uint64_t lost_workers = 0;
  std::uint64_t lost_ps = 0;
  std::uint64_t restarted_workers = 0;
  std::uint64_t restarted_ps = 0;
  std::uint64_t joined_workers = 0;  // late
  strategy::SaveMetrics saves;
  std::map<std::string, double> scalars;  // the last value of each
};

/// The most loaded over the mean; nothing without load.
std::optional<double> imbalance(const std::vector<double>& loads);

/// One record. Rates and quantiles are of the time between the two; without `before`, of all the time.
nlohmann::json to_json(const JobMetrics& now, const JobMetrics& before, bool with_workers);
/// The table for the end of the job.
std::string summary_of(const JobMetrics& now);
/// Prometheus' text format.
std::string prometheus_text(const JobMetrics& now);

}  // namespace capstan::telemetry
