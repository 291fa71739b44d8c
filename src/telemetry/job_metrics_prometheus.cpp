// job_metrics_prometheus.cpp -- Prometheus exposition format, for the textfile collector of node_exporter.
#include <fmt/format.h>

#include <string_view>

#include "telemetry/job_metrics.hpp"

namespace capstan::telemetry {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

/// A metric family: its HELP and TYPE lines, then one line per sample.
class Family {
 public:
  Family(std::string& text, std::string_view name, std::string_view type, std::string_view help)
      : text_(text), name_(name) {
    text_ += fmt::format("# HELP capstan_{} {}\n# TYPE capstan_{} {}\n", name, help, name, type);
  }
  Family& add(double value, const Labels& labels = {}) {
    text_ += fmt::format("capstan_{}", name_);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      text_ += fmt::format("{}{}=\"{}\"", i == 0 ? "{" : ",", labels[i].first, escaped(labels[i].second));
    }
    text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", value);
    return *this;
  }
  Family& add(std::uint64_t value, const Labels& labels = {}) {
    return add(static_cast<double>(value), labels);
  }

 private:
  std::string& text_;
  std::string_view name_;
};

void add_calls(std::string& text, const cluster::TrafficMetrics& traffic) {
  const auto each = [&](std::string_view name, std::string_view help, auto value_of) {
    Family family(text, name, "counter", help);
    family.add(value_of(traffic.pull), {{"kind", "pull"}}).add(value_of(traffic.push), {{"kind", "push"}});
  };
  each("calls_total", "pulls (with lookups) and pushes of all workers and the coordinator",
       [](const cluster::CallMetrics& calls) { return calls.calls; });
  each("rows_total", "rows pulled and pushed", [](const cluster::CallMetrics& calls) { return calls.rows; });
  each("bytes_total", "bytes pulled and pushed",
       [](const cluster::CallMetrics& calls) { return calls.bytes; });
  Family times(text, "call_seconds", "summary", "duration of a call, since the start of the job");
  const auto quantiles = [&](const cluster::CallMetrics& calls, const char* kind) {
    if (calls.times.count() == 0) return;
    for (const char* part : {"0.5", "0.99"})
      times.add(calls.times.quantile(std::stod(part)), {{"kind", kind}, {"quantile", part}});
  };
  quantiles(traffic.pull, "pull");
  quantiles(traffic.push, "push");
  quantiles(traffic.flush, "flush");
}

void add_ps(std::string& text, const std::vector<PsMetrics>& all) {
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help, auto value_of) {
    Family family(text, name, type, help);
    for (const PsMetrics& ps : all)
      family.add(value_of(ps), {{"ps", std::to_string(ps.index)}, {"host", ps.host}});
  };
  each("ps_up", "gauge", "1 if the ps is alive, 0 if it is dead",
       [](const PsMetrics& ps) { return std::uint64_t{ps.lost ? 0U : 1U}; });
  each("ps_bytes", "gauge", "registered memory of the ps",
       [](const PsMetrics& ps) { return ps.report.statistics.heap_bytes; });
  each("ps_gpu_bytes", "gauge", "values and slots in GPU memory of the ps",
       [](const PsMetrics& ps) { return ps.report.statistics.gpu_bytes; });
  each("ps_rows_pushed_total", "counter", "rows of applied pushes",
       [](const PsMetrics& ps) { return ps.report.statistics.rows_pushed; });
  each("ps_bytes_pushed_total", "counter", "bytes of applied pushes",
       [](const PsMetrics& ps) { return ps.report.statistics.bytes_pushed; });
  each("ps_rows_sent_total", "counter", "rows sent in messages",
       [](const PsMetrics& ps) { return ps.report.statistics.rows_sent; });
}

void add_tables(std::string& text, const std::map<std::string, protocol::TableStatistics>& tables,
                const cluster::KeyCounts& lookups) {
  if (tables.empty()) return;
  Family(text, "table_lookups_total", "counter", "keys of dynamic tables in lookups")
      .add(lookups.found, {{"result", "found"}})
      .add(lookups.missing, {{"result", "missing"}});
  const auto each = [&](std::string_view name, std::string_view type, std::string_view help, auto value_of) {
    Family family(text, name, type, help);
    for (const auto& [table, statistics] : tables) family.add(value_of(statistics), {{"table", table}});
  };
  using Statistics = protocol::TableStatistics;
  each("table_keys", "gauge", "keys of a dynamic table", [](const Statistics& s) { return s.keys; });
  each("table_max_keys", "gauge", "capacity of a dynamic table",
       [](const Statistics& s) { return s.most_keys; });
  each("table_bytes", "gauge", "memory of a dynamic table: keys, rows, slots and index",
       [](const Statistics& s) { return s.row_bytes + s.index_bytes; });
  each("table_probes", "gauge", "average number of cache lines that a search for a key reads",
       [](const Statistics& s) { return s.probes(); });
  each("table_inserted_total", "counter", "keys that were added",
       [](const Statistics& s) { return s.inserted; });
  each("table_evicted_total", "counter",
       "keys that were removed because of their age or because the table was full",
       [](const Statistics& s) { return s.evicted; });
  each("table_refused_total", "counter", "keys that were not added because the table was full",
       [](const Statistics& s) { return s.refused; });
  each("table_not_admitted_total", "counter", "gradients of keys that were not admitted yet",
       [](const Statistics& s) { return s.not_admitted; });
}

}  // namespace

std::string prometheus_text(const JobMetrics& now) {
  const CoordinatorStatistics& f = now.functions;
  std::string text;
  Family(text, "up_seconds", "gauge", "seconds since the start of the coordinator").add(now.elapsed);
  Family(text, "functions_total", "counter", "completed functions")
      .add(f.finished, {{"result", "ok"}})
      .add(f.failed, {{"result", "error"}});
  Family(text, "functions_open", "gauge", "scheduled functions that are not complete")
      .add(f.queued, {{"state", "queued"}})
      .add(f.waiting, {{"state", "waiting"}})
      .add(f.running, {{"state", "running"}});
  std::uint64_t alive = 0;
  for (const WorkerMetrics& worker : now.workers) alive += worker.lost ? 0 : 1;
  Family(text, "workers", "gauge", "live workers").add(alive);
  Family(text, "lost_total", "counter", "ranks that died")
      .add(now.lost_workers, {{"role", "worker"}})
      .add(now.lost_ps, {{"role", "ps"}});
  Family(text, "restarts_total", "counter", "restarted processes")
      .add(now.restarted_workers, {{"role", "worker"}})
      .add(now.restarted_ps, {{"role", "ps"}})
      .add(static_cast<std::uint64_t>(now.coordinator_restarts), {{"role", "coordinator"}});
  add_calls(text, now.traffic);
  add_ps(text, now.ps);
  add_tables(text, tables_of(now), keys_of(now));
  Family(text, "checkpoints_total", "counter", "checkpoints saved").add(now.saves.saves);
  Family(text, "checkpoint_seconds_total", "counter", "time from the start of a save to its publication")
      .add(now.saves.written_seconds);
  if (!now.scalars.empty()) {
    Family family(text, "scalar", "gauge", "metrics that the program reports");
    for (const auto& [name, value] : now.scalars) family.add(value, {{"name", name}});
  }
  return text;
}

}  // namespace capstan::telemetry
