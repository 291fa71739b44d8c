// top_table_test.cpp -- the table of `capstan top` for made-up metrics.
#include "launch/top_table.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <sstream>

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
  const std::string text = top_table(metrics(), {});
  EXPECT_THAT(text, HasSubstr("up 1:15 min   2 workers, 1 ps   lost: 1 workers, 0 ps\n"));
  EXPECT_THAT(
      text, HasSubstr("functions: 500/s, 3.0k ended, 16 queued, 4 with workers, 0 wait; p50 520us, p99 1ms"));
  EXPECT_THAT(text, HasSubstr("pull: 25.0k rows/s, 3.20MB/s, p50 0.4us, p99 1.28us\n"));
  EXPECT_THAT(text, HasSubstr("checkpoints: 2, the last in 1.5s\n"));
  EXPECT_THAT(text, HasSubstr("loss 0.25\n"));
  EXPECT_THAT(text, ContainsRegex("    1 worker 0   node17 +250 +1.5k +2 +- +12.3k +1.28us .* 98.00M\n"));
  EXPECT_THAT(text, ContainsRegex("    2 worker 1   node17 .* 3 .* LOST\n"));
  EXPECT_THAT(text, ContainsRegex("    3 ps 0       node18 +1.10M +36.0k +2 +67.11M"));
  EXPECT_THAT(text, Not(HasSubstr("hottest")));
}

TEST(TopTable, FitsTheScreen) {
  const std::string text = top_table(metrics(100), {.width = 60, .lines = 24});
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 23);
  EXPECT_THAT(text, EndsWith("more lines; capstan top --once prints all\n"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LT(line.size(), 60U);
}

TEST(TopTable, RatesAreFreshIfTheyCoverSeconds) {
  EXPECT_TRUE(has_fresh_rates({{"elapsed", 100}, {"seconds", 1.0}}));
  EXPECT_TRUE(has_fresh_rates({{"elapsed", 2}, {"seconds", 2.0}})) << "the job just started";
  EXPECT_FALSE(has_fresh_rates({{"elapsed", 100}, {"seconds", 100.0}})) << "covers the complete job";
  EXPECT_FALSE(has_fresh_rates({{"elapsed", 0}, {"seconds", 0}})) << "no sample yet";
}

}  // namespace
}  // namespace capstan::launch
