// top_table_test.cpp -- the table of `capstan top` for made-up metrics.
#include "launch/top_table.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace capstan::launch {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

json worker(int index, bool lost) {
  const json calls{{"rows_per_second", 12'345}, {"p99", 1.28e-6}};
  return {{"worker", index},
          {"rank", index + 1},
          {"host", "node17"},
          {"lost", lost},
          {"ended", 1500},
          {"per_second", 250.4},
          {"held", 2},
          {"pull", calls},
          {"push", calls},
          {"cpu_seconds", 3.25},
          {"peak_rss_bytes", 98'000'000},
          {"behind", index == 0 ? json(nullptr) : json(3)}};
}

json metrics(int workers = 2) {
  const json calls{{"rows_per_second", 25'000}, {"bytes_per_second", 3.2e6}, {"p50", 4e-7}, {"p99", 1.28e-6}};
  json all{{"elapsed", 75},
           {"seconds", 1},
           {"workers", workers},
           {"lost", {{"workers", 1}, {"ps", 0}}},
           {"functions",
            {{"per_second", 500},
             {"ended", 3000},
             {"queued", 16},
             {"running", 4},
             {"waiting", 0},
             {"execution", {{"p50", 5.2e-4}, {"p99", 1e-3}}}}},
           {"pull", calls},
           {"push", calls},
           {"hottest", nullptr},
           {"tables", json::array()},
           {"staleness", json::array()},
           {"checkpoints", {{"saved", 2}, {"last_seconds", 1.5}}},
           {"scalars", {{"loss", 0.25}}},
           {"ps", json::array({{{"ps", 0},
                                {"rank", 3},
                                {"host", "node18"},
                                {"lost", false},
                                {"shards", 2},
                                {"bytes", 67'108'864},
                                {"pushes", 36'000},
                                {"rows_pushed_per_second", 1.1e6},
                                {"bytes_pushed_per_second", 1.3e8},
                                {"rows_sent", 0},
                                {"cpu_seconds", 0.4},
                                {"peak_rss_bytes", 98'000'000}}})}};
  for (int i = 0; i < workers; ++i) all["each_worker"].push_back(worker(i, i == 1));
  return all;
}

TEST(TopTable, ShowsJobPsAndWorkers) {
  const std::string text = top_table(metrics(), {}, "42 % done, 1:43 min left");
  EXPECT_THAT(text, HasSubstr("up 1:15 min, 42 % done, 1:43 min left\n"
                              "2 workers, 1 ps; lost: 1 worker, 0 ps\n"
                              "functions  500/s, 3.00 k ended, 16 queued, 4 running, 0 waiting, p50 520 us,\n"
                              "           p99 1 ms\n"
                              "pull       25.0 k rows/s, 3.20 MB/s, p50 0.4 us, p99 1.28 us\n"));
  EXPECT_THAT(text, HasSubstr("saves      2 saved, the last in 1.5 s\n"));
  EXPECT_THAT(text, HasSubstr("scalars    loss 0.25\n"));
  EXPECT_THAT(text, ContainsRegex("    1 worker 0    node17 +250 +1.50 k +- +12.3 k +12.3 k +98.0 MB\n"));
  EXPECT_THAT(text, ContainsRegex("    2 worker 1    node17 +LOST +1.50 k +3 "));
  EXPECT_THAT(text, ContainsRegex("    3 ps 0        node18 +1.10 M +130 MB +2 +36.0 k +67.1 MB +98.0 MB\n"));
  EXPECT_THAT(text, Not(HasSubstr("hottest")));
}

TEST(TopTable, ShowsDynamicTables) {
  json with_table = metrics();
  with_table["tables"] = json::array({{{"table", "user"},
                                       {"keys", 1'200'000},
                                       {"load", 0.6},
                                       {"row_bytes", 300'000'000},
                                       {"index_bytes", 5'000'000},
                                       {"evicted", 12},
                                       {"refused", 0}}});
  EXPECT_THAT(top_table(with_table, {}),
              HasSubstr("table      user, 1.20 M keys, 60 % full, 305 MB, 12 evicted, 0 refused\n"));
}

TEST(TopTable, FitsTheScreen) {
  const std::string text = top_table(metrics(100), {.width = 60, .lines = 24});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 23);
  EXPECT_THAT(text, EndsWith("more lines; capstan top --once prints all\n"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LT(line.size(), 60U);
}

TEST(TopTable, NeedsNoMoreThan80Columns) {
  json wide = metrics(2);
  wide["workers"] = 100'000;
  wide["hottest"] = {{"variable", "entities/embedding"}, {"shard", 12}, {"ps", 123}, {"share", 0.9}};
  wide["staleness"] =
      json::array({{{"group", "model"}, {"bound", 1000}, {"steps", 123'456'789}, {"spread", 1000}}});
  for (int i = 0; i < 10; ++i) wide["scalars"]["test/accuracy" + std::to_string(i)] = 0.123456;
  wide["each_worker"][0]["rank"] = 9999;
  wide["each_worker"][0]["worker"] = 9999;
  wide["each_worker"][0]["host"] = "a-host-with-a-long-name";
  std::istringstream lines(top_table(wide, {.width = 0}));
  for (std::string line; std::getline(lines, line);) EXPECT_LT(line.size(), 80U) << line;
}

TEST(EpochProgress, ShowsPercentAndTimeLeft) {
  json now = metrics();
  EXPECT_EQ(EpochProgress(10).text(now), "") << "no epoch yet";
  now["scalars"]["epoch"] = 4;
  EXPECT_EQ(EpochProgress(0).text(now), "") << "unknown number of epochs";
  EXPECT_EQ(EpochProgress(10).text(now), "40 % done, 1:53 min left");
  now["scalars"]["epoch"] = 10;
  EXPECT_EQ(EpochProgress(10).text(now), "100 % done, 0.0 s left");
}

TEST(EpochProgress, TimeLeftOfAResumedRunIgnoresEarlierEpochs) {
  json now = metrics();
  now["scalars"]["epoch"] = 50;
  EpochProgress progress(60, true);
  EXPECT_EQ(progress.text(now), "83 % done");
  now["scalars"]["epoch"] = 52;
  now["elapsed"] = 85;
  EXPECT_EQ(progress.text(now), "86 % done, 40.0 s left");
}

TEST(TopTable, RatesAreFreshIfTheyCoverSeconds) {
  EXPECT_TRUE(has_fresh_rates({{"elapsed", 100}, {"seconds", 1.0}}));
  EXPECT_TRUE(has_fresh_rates({{"elapsed", 2}, {"seconds", 2.0}})) << "the job just started";
  EXPECT_FALSE(has_fresh_rates({{"elapsed", 100}, {"seconds", 100.0}})) << "covers the complete job";
  EXPECT_FALSE(has_fresh_rates({{"elapsed", 0}, {"seconds", 0}})) << "no sample yet";
}

}  // namespace
}  // namespace capstan::launch
