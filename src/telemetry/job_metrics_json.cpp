// job_metrics_json.cpp -- a record of metrics.jsonl.
#include <algorithm>
#include <numeric>

#include "telemetry/job_metrics.hpp"

namespace capstan::telemetry {
namespace {

using nlohmann::json;

double rate(std::uint64_t now, std::uint64_t before, double seconds) {
  return seconds > 0 && now > before ? static_cast<double>(now - before) / seconds : 0;
}

Histogram since(const Histogram& now, const Histogram& before) {
  Histogram difference{now.count - before.count, now.seconds - before.seconds, now.buckets};
  for (std::size_t i = 0; i < Histogram::kBuckets; ++i) difference.buckets[i] -= before.buckets[i];
  return difference;
}

void add_quantiles(json& to, const auto& times) {
  to["p50"] = times.quantile(0.5);
  to["p99"] = times.quantile(0.99);
}

json functions_json(const JobMetrics& now, const JobMetrics& before, double seconds) {
  const CoordinatorStatistics& f = now.functions;
  const std::uint64_t ended = f.finished + f.failed;
  json all{{"scheduled", f.scheduled},
           {"ended", ended},
           {"failed", f.failed},
           {"moved", f.moved},
           {"per_second", rate(ended, before.functions.finished + before.functions.failed, seconds)},
           {"queued", f.queued},
           {"waiting", f.waiting},
           {"running", f.running}};
  add_quantiles(all["execution"] = json::object(), since(f.execution, before.functions.execution));
  add_quantiles(all["queueing"] = json::object(), since(f.queueing, before.functions.queueing));
  return all;
}

json calls_json(const cluster::CallMetrics& now, const cluster::CallMetrics& before, double seconds) {
  json all{{"calls", now.calls},
           {"rows", now.rows},
           {"bytes", now.bytes},
           {"calls_per_second", rate(now.calls, before.calls, seconds)},
           {"rows_per_second", rate(now.rows, before.rows, seconds)},
           {"bytes_per_second", rate(now.bytes, before.bytes, seconds)}};
  add_quantiles(all, now.times.since(before.times));
  return all;
}

template <class RankMetrics>
const RankMetrics* same_in(const std::vector<RankMetrics>& before, const RankMetrics& now) {
  const auto found = std::find_if(before.begin(), before.end(), [&](const RankMetrics& then) {
    return then.index == now.index && then.rank == now.rank;
  });
  return found == before.end() ? nullptr : &*found;
}

json ps_json(const PsMetrics& ps, const PsMetrics* before, double seconds) {
  const protocol::PsStatistics& s = ps.report.statistics;
  const protocol::PsStatistics then =
      before != nullptr ? before->report.statistics : protocol::PsStatistics{};
  return {{"ps", ps.index},
          {"rank", ps.rank},
          {"host", ps.host},
          {"lost", ps.lost},
          {"shards", ps.report.shards},
          {"bytes", s.heap_bytes},
          {"gpu_bytes", s.gpu_bytes},
          {"pushes", s.pushes},
          {"rows_pushed", s.rows_pushed},
          {"bytes_pushed", s.bytes_pushed},
          {"rows_sent", s.rows_sent},
          {"rows_pushed_per_second", rate(s.rows_pushed, then.rows_pushed, seconds)},
          {"bytes_pushed_per_second", rate(s.bytes_pushed, then.bytes_pushed, seconds)},
          {"cpu_seconds", ps.report.use.cpu_seconds},
          {"peak_rss_bytes", ps.report.use.peak_rss_bytes}};
}

/// Returns how many steps each rank is behind the fastest rank of its update group, as ps 0 reports the
/// clocks. For a rank in several groups, returns the largest number.
std::map<int, std::uint64_t> steps_behind(const JobMetrics& now) {
  std::map<int, std::uint64_t> behind;
  if (now.ps.empty()) return behind;
  for (const protocol::GroupReport& group : now.ps.front().report.groups) {
    std::uint64_t most = 0;
    for (const auto& [rank, clock] : group.clocks.clocks) most = std::max(most, clock);
    for (const auto& [rank, clock] : group.clocks.clocks) behind[rank] = std::max(behind[rank], most - clock);
  }
  return behind;
}

json worker_json(const WorkerMetrics& worker, const WorkerMetrics* before, double seconds) {
  const WorkerMetrics none;
  const WorkerMetrics& then = before != nullptr ? *before : none;
  return {{"worker", worker.index},
          {"rank", worker.rank},
          {"host", worker.host},
          {"lost", worker.lost},
          {"ended", worker.ended},
          {"per_second", rate(worker.ended, then.ended, seconds)},
          {"held", worker.held},
          {"pull", calls_json(worker.traffic.pull, then.traffic.pull, seconds)},
          {"push", calls_json(worker.traffic.push, then.traffic.push, seconds)},
          {"cpu_seconds", worker.use.cpu_seconds},
          {"peak_rss_bytes", worker.use.peak_rss_bytes}};
}

json staleness_json(const JobMetrics& now) {
  json all = json::array();
  if (now.ps.empty()) return all;
  for (const protocol::GroupReport& group : now.ps.front().report.groups) {
    std::vector<std::uint64_t> clocks;
    for (const auto& [rank, clock] : group.clocks.clocks) clocks.push_back(clock);
    const auto [least, most] = std::minmax_element(clocks.begin(), clocks.end());
    const bool named = group.group >= 1 && group.group <= now.groups.size();
    const bool stale = group.clocks.mode == protocol::GroupMode::stale_synchronous;
    all.push_back({{"group", named ? now.groups[group.group - 1] : std::to_string(group.group)},
                   {"bound", stale ? group.clocks.bound : 0},
                   {"steps", group.clocks.steps},
                   {"spread", clocks.empty() ? 0 : *most - *least}});
  }
  return all;
}

/// The shard with the most rows pushed and sent of all ps, and its share of all rows.
json hottest_json(const JobMetrics& now) {
  const PsMetrics* hottest = nullptr;
  std::uint64_t rows = 0;
  for (const PsMetrics& ps : now.ps) {
    rows += ps.report.statistics.rows_pushed + ps.report.statistics.rows_sent;
    if (hottest == nullptr || ps.report.hottest.rows > hottest->report.hottest.rows) hottest = &ps;
  }
  if (hottest == nullptr || hottest->report.hottest.rows == 0) return nullptr;
  const protocol::HottestShard& shard = hottest->report.hottest;
  return {{"variable", shard.variable},
          {"shard", shard.shard},
          {"ps", hottest->index},
          {"rows", shard.rows},
          {"share", static_cast<double>(shard.rows) / static_cast<double>(std::max(rows, shard.rows))}};
}

json tables_json(const JobMetrics& now) {
  json all = json::array();
  for (const auto& [name, table] : tables_of(now)) {
    all.push_back({{"table", name},
                   {"keys", table.keys},
                   {"max_keys", table.most_keys},
                   {"load", static_cast<double>(table.keys) / static_cast<double>(table.most_keys)},
                   {"inserted", table.inserted},
                   {"erased", table.erased},
                   {"evicted", table.evicted},
                   {"refused", table.refused},
                   {"not_admitted", table.not_admitted},
                   {"growths", table.growths},
                   {"row_bytes", table.row_bytes},
                   {"index_bytes", table.index_bytes},
                   {"probes", table.probes()}});
  }
  return all;
}

json balance_json(const JobMetrics& now) {
  std::vector<double> bytes;
  std::vector<double> rows;
  for (const PsMetrics& ps : now.ps) {
    const protocol::PsStatistics& s = ps.report.statistics;
    bytes.push_back(static_cast<double>(s.heap_bytes + s.gpu_bytes));
    rows.push_back(static_cast<double>(s.rows_pushed));
  }
  const auto value = [](const std::optional<double>& of) { return of ? json(*of) : json(nullptr); };
  return {{"bytes", value(imbalance(bytes))}, {"rows_pushed", value(imbalance(rows))}};
}

}  // namespace

std::map<std::string, protocol::TableStatistics> tables_of(const JobMetrics& metrics) {
  std::map<std::string, protocol::TableStatistics> tables;
  for (const PsMetrics& ps : metrics.ps) {
    for (const auto& [name, shard] : ps.report.tables) tables[name].add(shard);
  }
  return tables;
}

cluster::KeyCounts keys_of(const JobMetrics& metrics) {
  cluster::KeyCounts keys = metrics.traffic.keys;
  for (const PsMetrics& ps : metrics.ps) keys.add(ps.report.statistics.keys);
  return keys;
}

std::optional<double> imbalance(const std::vector<double>& loads) {
  const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
  if (sum <= 0) return std::nullopt;
  return *std::max_element(loads.begin(), loads.end()) / (sum / static_cast<double>(loads.size()));
}

json to_json(const JobMetrics& now, const JobMetrics& before, bool with_workers) {
  const double seconds = now.elapsed - before.elapsed;
  const auto alive = std::count_if(now.workers.begin(), now.workers.end(),
                                   [](const WorkerMetrics& worker) { return !worker.lost; });
  const cluster::KeyCounts keys = keys_of(now);
  json record{{"time", now.time},
              {"elapsed", now.elapsed},
              {"seconds", seconds},
              {"functions", functions_json(now, before, seconds)},
              {"workers", alive},
              {"pull", calls_json(now.traffic.pull, before.traffic.pull, seconds)},
              {"push", calls_json(now.traffic.push, before.traffic.push, seconds)},
              {"flush", calls_json(now.traffic.flush, before.traffic.flush, seconds)},
              {"ps", json::array()},
              {"balance", balance_json(now)},
              {"hottest", hottest_json(now)},
              {"tables", tables_json(now)},
              {"table_lookups", {{"found", keys.found}, {"missing", keys.missing}}},
              {"staleness", staleness_json(now)},
              {"checkpoints",
               {{"saved", now.saves.saves},
                {"waited_seconds", now.saves.waited_seconds},
                {"written_seconds", now.saves.written_seconds},
                {"last_seconds", now.saves.last_seconds}}},
              {"lost", {{"workers", now.lost_workers}, {"ps", now.lost_ps}}},
              {"restarts",
               {{"workers", now.restarted_workers},
                {"ps", now.restarted_ps},
                {"coordinator", now.coordinator_restarts}}},
              {"joined", now.joined_workers},
              {"scalars", now.scalars}};
  for (const char* of : {"rows", "bytes", "rows_per_second", "bytes_per_second"}) record["flush"].erase(of);
  for (const PsMetrics& ps : now.ps) record["ps"].push_back(ps_json(ps, same_in(before.ps, ps), seconds));
  if (!with_workers) return record;
  const auto behind = steps_behind(now);
  for (const WorkerMetrics& worker : now.workers) {
    json one = worker_json(worker, same_in(before.workers, worker), seconds);
    const auto steps = behind.find(worker.rank);
    one["behind"] = steps == behind.end() ? json(nullptr) : json(steps->second);
    record["each_worker"].push_back(std::move(one));
  }
  return record;
}

}  // namespace capstan::telemetry
