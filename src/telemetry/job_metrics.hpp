// job_metrics.hpp -- metrics of a job and their text formats; docs/metrics.md lists every field.
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

/// Metrics of the current process of a worker.
struct WorkerMetrics {
  int index = 0;
  int rank = 0;
  std::string host;
  bool lost = false;
  std::uint64_t ended = 0;  // functions completed
  std::uint64_t held = 0;   // functions assigned and not completed
  cluster::TrafficMetrics traffic = {};
  cluster::ProcessUse use = {};
  bool reported = false;
};

struct PsMetrics {
  int index = 0;
  int rank = 0;
  std::string host;
  bool lost = false;
  protocol::PsReport report = {};  // its statistics cover all incarnations of the ps
  bool reported = false;
};

/// All counts are since the start of the coordinator.
struct JobMetrics {
  double time = 0;               // seconds since the Unix epoch
  double elapsed = 0;            // seconds since the coordinator's start
  int coordinator_restarts = 0;  // restarts of the coordinator
  CoordinatorStatistics functions;
  cluster::TrafficMetrics traffic;  // of the coordinator and all workers, dead ones included
  std::vector<WorkerMetrics> workers;
  std::vector<PsMetrics> ps;
  std::vector<std::string> groups;  // names of update groups, by number - 1
  std::uint64_t lost_workers = 0;
  std::uint64_t lost_ps = 0;
  std::uint64_t restarted_workers = 0;
  std::uint64_t restarted_ps = 0;
  std::uint64_t joined_workers = 0;  // late joins
  strategy::SaveMetrics saves;
  std::map<std::string, double> scalars;  // last value by name
};

/// Returns the statistics of each dynamic table, summed over the ps, by name.
std::map<std::string, protocol::TableStatistics> tables_of(const JobMetrics& metrics);
/// Keys in lookups of all dynamic tables.
cluster::KeyCounts keys_of(const JobMetrics& metrics);

/// Largest load divided by the mean; nullopt without load.
std::optional<double> imbalance(const std::vector<double>& loads);

/// One record of metrics.jsonl. Rates and quantiles cover the interval from `before` to `now`; with a default
/// `before`, the complete run.
nlohmann::json to_json(const JobMetrics& now, const JobMetrics& before, bool with_workers);
/// Text of summary.txt.
std::string summary_of(const JobMetrics& now);
/// Text in the exposition format of Prometheus.
std::string prometheus_text(const JobMetrics& now);

}  // namespace capstan::telemetry
