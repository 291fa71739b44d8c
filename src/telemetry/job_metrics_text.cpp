// job_metrics_text.cpp -- the summary at the end of a job.
#include <fmt/format.h>

#include <algorithm>

#include "telemetry/job_metrics.hpp"

namespace capstan::telemetry {
namespace {

std::string time_text(double seconds) {
  if (seconds <= 0) return "-";
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

std::string bytes_text(double bytes) {
  for (const char* unit : {"B", "KB", "MB", "GB"}) {
    if (bytes < 999.5) return fmt::format("{:.3g} {}", bytes, unit);
    bytes /= 1000;
  }
  return fmt::format("{:.4g} TB", bytes);
}

std::string on_gpu_text(std::uint64_t bytes) {
  return bytes == 0 ? "" : fmt::format(" and {} on its GPU", bytes_text(static_cast<double>(bytes)));
}

std::string row(std::string_view what, const std::string& text) {
  return fmt::format("  {:<16}{}\n", what, text);
}

std::string calls_text(const cluster::CallMetrics& calls, double seconds) {
  if (calls.calls == 0) return "none";
  return fmt::format("{} calls, {} rows, {} ({}/s), p50 {}, p99 {}", calls.calls, calls.rows,
                     bytes_text(static_cast<double>(calls.bytes)),
                     bytes_text(static_cast<double>(calls.bytes) / std::max(seconds, 1e-9)),
                     time_text(calls.times.quantile(0.5)), time_text(calls.times.quantile(0.99)));
}

std::string number_text(const nlohmann::json& number) {
  return number.is_number() ? fmt::format("{:.2f}", number.get<double>()) : "-";
}

}  // namespace

std::string summary_of(const JobMetrics& now) {
  const nlohmann::json record = to_json(now, JobMetrics{}, false);
  const CoordinatorStatistics& f = now.functions;
  const std::uint64_t ended = f.finished + f.failed;
  std::string text = fmt::format("metrics of the job, over {:.1f} s\n", now.elapsed);
  text += row("functions",
              fmt::format("{} ended ({} failed), {:.4g} a second, execution p50 {}, p99 {}", ended, f.failed,
                          static_cast<double>(ended) / std::max(now.elapsed, 1e-9),
                          time_text(f.execution.quantile(0.5)), time_text(f.execution.quantile(0.99))));
  text += row("pull", calls_text(now.traffic.pull, now.elapsed));
  text += row("push", calls_text(now.traffic.push, now.elapsed));
  if (now.traffic.flush.calls > 0)
    text += row("flush", fmt::format("{} calls, p50 {}, p99 {}", now.traffic.flush.calls,
                                     time_text(now.traffic.flush.times.quantile(0.5)),
                                     time_text(now.traffic.flush.times.quantile(0.99))));
  for (const PsMetrics& ps : now.ps) {
    const protocol::PsStatistics& s = ps.report.statistics;
    text +=
        row(fmt::format("ps {}", ps.index),
            ps.reported ? fmt::format("{}: {} shards, {}{}, {} pushes of {} rows, {}; {} rows sent", ps.host,
                                      ps.report.shards, bytes_text(static_cast<double>(s.heap_bytes)),
                                      on_gpu_text(s.gpu_bytes), s.pushes, s.rows_pushed,
                                      bytes_text(static_cast<double>(s.bytes_pushed)), s.rows_sent)
                        : ps.host + ": no report received");
  }
  text += row("balance of ps",
              fmt::format("maximum / mean: bytes {}, rows pushed {}", number_text(record["balance"]["bytes"]),
                          number_text(record["balance"]["rows_pushed"])));
  if (const auto& hottest = record["hottest"]; !hottest.is_null())
    text +=
        row("hottest shard", fmt::format("{} shard {} on ps {}, {:.0f}% of the rows",
                                         hottest["variable"].get<std::string>(), hottest["shard"].get<int>(),
                                         hottest["ps"].get<int>(), 100 * hottest["share"].get<double>()));
  for (const auto& [name, table] : tables_of(now))
    text += row(name, fmt::format("dynamic table: {} of {} keys, {}; {} evicted, {} refused, {} not admitted",
                                  table.keys, table.most_keys,
                                  bytes_text(static_cast<double>(table.row_bytes + table.index_bytes)),
                                  table.evicted, table.refused, table.not_admitted));
  if (const cluster::KeyCounts keys = keys_of(now); keys.found + keys.missing > 0)
    text += row("table lookups", fmt::format("{} keys found, {} missing", keys.found, keys.missing));
  for (const auto& group : record["staleness"])
    text += row("staleness",
                fmt::format("group {}: bound {}, {} steps, workers {} steps apart at the end",
                            group["group"].get<std::string>(), group["bound"].get<std::int64_t>(),
                            group["steps"].get<std::uint64_t>(), group["spread"].get<std::uint64_t>()));
  if (now.saves.saves > 0)
    text += row("checkpoints",
                fmt::format("{} in {} (the last one {}), for which the program waited {}", now.saves.saves,
                            time_text(now.saves.written_seconds), time_text(now.saves.last_seconds),
                            time_text(now.saves.waited_seconds)));
  if (now.lost_workers + now.lost_ps + now.joined_workers +
          static_cast<std::uint64_t>(now.coordinator_restarts) >
      0)
    text += row("losses", fmt::format("{} workers and {} ps died; restarts: {} workers, {} ps, "
                                      "coordinator {}; {} workers joined",
                                      now.lost_workers, now.lost_ps, now.restarted_workers, now.restarted_ps,
                                      now.coordinator_restarts, now.joined_workers));
  for (const auto& [name, value] : now.scalars) text += row(name, fmt::format("{:.6g}", value));
  return text;
}

}  // namespace capstan::telemetry
