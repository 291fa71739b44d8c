// metrics_format_test.cpp -- records and the summary of metrics with known values.
// Tests: src/telemetry/job_metrics_json.cpp
// Tests: src/telemetry/job_metrics_prometheus.cpp
// Tests: src/telemetry/job_metrics_text.cpp
#include "telemetry/job_metrics.hpp"

#include <gmock/gmock.h>

#include <set>
#include <sstream>
#include <string>

namespace capstan::coordinator {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

telemetry::PsMetrics ps_of(int index, std::uint64_t bytes, std::uint64_t rows, const std::string& variable) {
  telemetry::PsMetrics ps{.index = index, .rank = 3 + index, .host = "node17", .reported = true};
  ps.report.statistics = {
      .rows_pushed = rows, .bytes_pushed = 256 * rows, .pushes = rows / 10, .heap_bytes = bytes};
  ps.report.shards = 1;
  ps.report.hottest = {variable, static_cast<std::uint32_t>(index), rows};
  return ps;
}

telemetry::JobMetrics job() {
  telemetry::JobMetrics job;
  job.time = 1'800'000'010;
  job.elapsed = 10;
  job.functions.scheduled = 120;
  job.functions.finished = 98;
  job.functions.failed = 2;
  job.functions.queued = 16;
  job.functions.running = 4;
  for (int i = 0; i < 100; ++i) job.functions.execution.add(1'000'000);
  job.traffic.pull = {1000, 4000, 1'024'000};
  job.traffic.pull.times.counts[cluster::Times::bucket_of(2000)] = 8;
  job.workers = {{.index = 0, .rank = 1, .host = "node17", .ended = 60, .held = 3},
                 {.index = 1, .rank = 2, .host = "node18", .ended = 40, .held = 1}};
  job.ps = {ps_of(0, 1000, 3000, "w"), ps_of(1, 3000, 1000, "w")};
  job.scalars = {{"loss", 0.25}};
  return job;
}

TEST(JobMetrics, RecordHasRatesOfItsPeriod) {
  const telemetry::JobMetrics before = job();
  telemetry::JobMetrics now = before;
  now.elapsed = 14;
  now.functions.finished += 20;
  for (int i = 0; i < 20; ++i) now.functions.execution.add(8'000'000);
  now.traffic.pull.calls += 100;
  now.traffic.pull.rows += 400;
  now.traffic.pull.times.counts[cluster::Times::bucket_of(100'000)] += 3;
  now.ps[0].report.statistics.rows_pushed += 800;
  const json record = telemetry::to_json(now, before, false);
  EXPECT_EQ(record["seconds"], 4);
  EXPECT_EQ(record["functions"]["ended"], 120);
  EXPECT_EQ(record["functions"]["per_second"], 5);
  EXPECT_EQ(record["functions"]["execution"]["p50"], Histogram::bound(Histogram::bucket_of(8'000'000)));
  EXPECT_EQ(record["functions"]["queued"], 16);
  EXPECT_EQ(record["workers"], 2);
  EXPECT_EQ(record["pull"]["rows"], 4400);
  EXPECT_EQ(record["pull"]["rows_per_second"], 100);
  EXPECT_GE(record["pull"]["p50"].get<double>(), 100e-6);
  EXPECT_LE(record["pull"]["p99"].get<double>(), 126e-6);
  EXPECT_EQ(record["ps"][0]["rows_pushed_per_second"], 200);
  EXPECT_EQ(record["ps"][1]["rows_pushed_per_second"], 0);
  EXPECT_EQ(record["scalars"]["loss"], 0.25);
  EXPECT_FALSE(record.contains("each_worker"));
}

TEST(JobMetrics, ReportsBalanceAndTheHottestShard) {
  const json record = telemetry::to_json(job(), telemetry::JobMetrics{}, false);
  EXPECT_EQ(record["balance"]["bytes"], 1.5);
  EXPECT_EQ(record["balance"]["rows_pushed"], 1.5);
  EXPECT_EQ(record["hottest"],
            (json{{"variable", "w"}, {"shard", 0}, {"ps", 0}, {"rows", 3000}, {"share", 0.75}}));
  EXPECT_FALSE(telemetry::imbalance({0, 0}).has_value());
  EXPECT_TRUE(
      telemetry::to_json(telemetry::JobMetrics{}, telemetry::JobMetrics{}, true)["hottest"].is_null());
}

TEST(JobMetrics, AddsUpTheShardsOfADynamicTable) {
  telemetry::JobMetrics now = job();
  EXPECT_EQ(telemetry::to_json(now, telemetry::JobMetrics{}, false)["tables"], json::array());
  for (telemetry::PsMetrics& ps : now.ps) {
    const auto keys = static_cast<std::uint64_t>(10 * (ps.index + 1));
    ps.report.tables = {{"user",
                         {.keys = keys,
                          .most_keys = 100,
                          .inserted = keys + 4,
                          .erased = 1,
                          .refused = 5,
                          .evicted = 3,
                          .not_admitted = 7,
                          .growths = 2,
                          .row_bytes = 1000,
                          .index_bytes = 500,
                          .sampled_keys = 4,
                          .sampled_lines = 5}}};
  }
  EXPECT_EQ(telemetry::to_json(now, telemetry::JobMetrics{}, false)["tables"],
            (json::array({{{"table", "user"},
                           {"keys", 30},
                           {"max_keys", 200},
                           {"load", 0.15},
                           {"inserted", 38},
                           {"erased", 2},
                           {"refused", 10},
                           {"evicted", 6},
                           {"not_admitted", 14},
                           {"growths", 4},
                           {"row_bytes", 2000},
                           {"index_bytes", 1000},
                           {"probes", 1.25}}})));
  EXPECT_THAT(telemetry::summary_of(now),
              HasSubstr("dynamic table: 30 of 200 keys, 3 KB; 6 evicted, 10 refused, 14 not admitted"));
  EXPECT_THAT(telemetry::prometheus_text(now), HasSubstr("capstan_table_keys{table=\"user\"} 30\n"));
  now.traffic.keys = {100, 7};
  now.ps[1].report.statistics.keys = {10, 1};
  EXPECT_EQ(telemetry::to_json(now, telemetry::JobMetrics{}, false)["table_lookups"],
            (json{{"found", 110}, {"missing", 8}}));
  EXPECT_THAT(telemetry::summary_of(now), HasSubstr("110 keys found, 8 missing"));
  EXPECT_THAT(telemetry::prometheus_text(now), HasSubstr("table_lookups_total{result=\"missing\"} 8\n"));
}

TEST(JobMetrics, StalenessIsTheDistanceBetweenWorkersInSteps) {
  telemetry::JobMetrics now = job();
  now.groups = {"all"};
  protocol::GroupClocks clocks{protocol::GroupMode::stale_synchronous, 3, 7, {{1, 9}, {2, 7}}};
  now.ps[0].report.groups = {{1, clocks}};
  const json record = telemetry::to_json(now, telemetry::JobMetrics{}, true);
  EXPECT_EQ(record["staleness"],
            (json::array({{{"group", "all"}, {"bound", 3}, {"steps", 7}, {"spread", 2}}})));
  EXPECT_EQ(record["each_worker"][0]["behind"], 0);
  EXPECT_EQ(record["each_worker"][1]["behind"], 2);
  EXPECT_THAT(telemetry::summary_of(now), HasSubstr("group all: bound 3, 7 steps, workers 2 steps apart"));
}

TEST(JobMetrics, DoesNotSubtractCountersOfAnEarlierProcess) {
  const telemetry::JobMetrics before = job();
  telemetry::JobMetrics now = before;
  now.elapsed += 2;
  now.workers[1] = {.index = 1, .rank = 7, .host = "node18", .ended = 10};  // restarted
  const json record = telemetry::to_json(now, before, true);
  EXPECT_EQ(record["each_worker"][1]["per_second"], 5);
}

TEST(JobMetrics, SummaryHasOneLineForEachTopic) {
  telemetry::JobMetrics now = job();
  now.saves = {.saves = 2, .waited_seconds = 0.1, .written_seconds = 3, .last_seconds = 1.25};
  const std::string text = telemetry::summary_of(now);
  EXPECT_THAT(text, HasSubstr("functions       100 ended (2 failed), 10 a second"));
  EXPECT_THAT(text, HasSubstr("pull            1000 calls, 4000 rows, 1.02 MB (102 KB/s), p50 2."));
  EXPECT_THAT(text, HasSubstr("push            none"));
  EXPECT_THAT(text, HasSubstr("ps 1            node17: 1 shards, 3 KB, 100 pushes of 1000 rows"));
  EXPECT_THAT(text, HasSubstr("maximum / mean: bytes 1.50, rows pushed 1.50"));
  EXPECT_THAT(text, HasSubstr("hottest shard   w shard 0 on ps 0, 75% of the rows"));
  EXPECT_THAT(text, HasSubstr("2 in 3 s (the last one 1.25 s), for which the program waited 100 ms"));
  EXPECT_THAT(text, HasSubstr("loss            0.25"));
  EXPECT_THAT(text, Not(HasSubstr("losses")));
}

TEST(JobMetrics, PrometheusFormatHasAHeaderForEachFamily) {
  telemetry::JobMetrics now = job();
  now.ps[1].lost = true;
  now.scalars["odd \"name\"\\\n"] = 2;
  const std::string text = telemetry::prometheus_text(now);
  EXPECT_THAT(text, HasSubstr("# HELP capstan_functions_total completed functions\n"
                              "# TYPE capstan_functions_total counter\n"
                              "capstan_functions_total{result=\"ok\"} 98\n"
                              "capstan_functions_total{result=\"error\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("capstan_rows_total{kind=\"pull\"} 4000\n"));
  EXPECT_THAT(text, HasSubstr("capstan_ps_up{ps=\"0\",host=\"node17\"} 1\n"
                              "capstan_ps_up{ps=\"1\",host=\"node17\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("capstan_scalar{name=\"loss\"} 0.25\n"));
  EXPECT_THAT(text, HasSubstr(R"(capstan_scalar{name="odd \"name\"\\ "} 2)"));
  EXPECT_THAT(text, HasSubstr("capstan_workers 2\n"));
  EXPECT_EQ(text.back(), '\n');
  // Each sample belongs to the header before it, and no family occurs twice.
  std::set<std::string> families;
  std::string family;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(families.insert(family).second) << family;
    } else if (!line.starts_with("# TYPE ")) {
      EXPECT_EQ(line.substr(0, line.find_first_of("{ ")), family);
    }
  }
}

}  // namespace
}  // namespace capstan::coordinator
