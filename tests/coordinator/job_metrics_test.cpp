// job_metrics_test.cpp -- the metrics of a job, compared with the known work of its functions.
// Tests: src/coordinator/metrics.cpp
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "capstan/coordinator.hpp"
#include "capstan/dynamic_table.hpp"
#include "support/log_text.hpp"
#include "support/poll.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr std::int64_t kJobMetricsRows = 100;
constexpr std::int64_t kWidth = 8;
constexpr int kFunctions = 300;

/// Adds three keys to a dynamic table, looks up 5 rows, pushes 3 rows, and pulls all rows once.
void move(const Variable<float>& table, const DynamicTable<float>& words) {
  words.insert(std::vector<std::int64_t>{1, 2, 3});
  (void)table.lookup(std::vector<std::int64_t>{1, 20, 30, 40, 99});
  table.push(std::vector<std::int64_t>{0, 50, 51}, std::vector<float>(3 * kWidth, 1.0F));
  (void)table.pull();
}

class MetricsOfAJob : public testing::TestWithParam<Network> {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "capstan-metrics-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  RankThreadsOptions options(const std::string& every) const {
    return {.ranks = 5,
            .flags = {{"ps", "2"}, {"run-dir", directory_.string()}, {"metrics-every", every}},
            .network = GetParam()};
  }
  void run(const std::string& every) const {
    RankThreads ranks(options(every));
    ParameterServerStrategy strategy(ranks.cluster(), {FixedShardsPartitioner{2}});
    auto scope = strategy.scope();
    Variable<float> table("table", Shape{kJobMetricsRows, kWidth}, initializers::zeros(),
                          {optimizers::SGD{0.1}});
    const DynamicTable<float> words("words", 2, {}, {.max_keys = 1000});
    ClusterCoordinator coordinator(strategy);
    for (int i = 0; i < kFunctions; ++i) {
      coordinator.schedule<&move>(table, words);
      coordinator.scalar("step", i, i);
    }
    coordinator.join();
  }
  std::vector<json> records() const {
    std::ifstream in(directory_ / "metrics.jsonl");
    std::vector<json> all;
    // A line without its newline is still being written.
    for (std::string line; std::getline(in, line) && !in.eof();) all.push_back(json::parse(line));
    return all;
  }

  std::filesystem::path directory_;
};

TEST_P(MetricsOfAJob, LastRecordContainsAllWork) {
  const LogText log;
  run("1h");
  const auto all = records();
  ASSERT_EQ(all.size(), 1U) << "a job that ends before its first record writes the last one";
  const json& last = all.back();
  EXPECT_EQ(last["functions"]["scheduled"], kFunctions);
  EXPECT_EQ(last["functions"]["ended"], kFunctions);
  EXPECT_EQ(last["functions"]["running"], 0);
  EXPECT_EQ(last["workers"], 2);
  EXPECT_EQ(last["pull"]["calls"], 2 * kFunctions);
  EXPECT_EQ(last["pull"]["rows"], (5 + kJobMetricsRows) * kFunctions);
  EXPECT_EQ(last["pull"]["bytes"], (5 + kJobMetricsRows) * kFunctions * kWidth * 4);
  EXPECT_GT(last["pull"]["p50"], 0);
  EXPECT_GE(last["pull"]["p99"], last["pull"]["p50"]);
  EXPECT_EQ(last["push"]["rows"], 3 * kFunctions);
  EXPECT_LE(last["flush"]["calls"], kFunctions);
  ASSERT_EQ(last["ps"].size(), 2U);
  EXPECT_EQ(last["ps"][0]["rows_pushed"], kFunctions) << "row 0";
  EXPECT_EQ(last["ps"][1]["rows_pushed"], 2 * kFunctions) << "rows 50 and 51";
  EXPECT_EQ(last["ps"][0]["shards"], 2);
  EXPECT_EQ(last["tables"][0]["table"], "words");
  EXPECT_EQ(last["tables"][0]["keys"], 3);
  EXPECT_EQ(last["tables"][0]["inserted"], 3);
  EXPECT_GE(last["tables"][0]["max_keys"], 1000);
  EXPECT_NEAR(last["balance"]["rows_pushed"].get<double>(), 4.0 / 3, 1e-9);
  EXPECT_EQ(last["hottest"]["variable"], "table");
  EXPECT_EQ(last["hottest"]["shard"], 1);
  EXPECT_EQ(last["scalars"]["step"], kFunctions - 1);
  EXPECT_EQ(last["lost"], (json{{"workers", 0}, {"ps", 0}}));
  EXPECT_THAT(log.text(), HasSubstr("functions       "));
  std::ifstream summary(directory_ / "summary.txt");
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(summary), {}), HasSubstr("300 ended (0 failed)"));
}

TEST_P(MetricsOfAJob, RecordsAreContinuous) {
  {
    RankThreads ranks(options("20ms"));
    ParameterServerStrategy strategy(ranks.cluster());
    auto scope = strategy.scope();
    Variable<float> table("table", Shape{kJobMetricsRows, kWidth}, initializers::zeros());
    const DynamicTable<float> words("words", 2);
    ClusterCoordinator coordinator(strategy);
    EXPECT_TRUE(poll_until([&] {
      coordinator.schedule<&move>(table, words);
      coordinator.join();
      return records().size() >= 4;
    }));
  }
  const auto all = records();
  ASSERT_GE(all.size(), 4U);
  for (std::size_t i = 1; i < all.size(); ++i) {
    EXPECT_GE(all[i]["time"], all[i - 1]["time"]);
    EXPECT_GE(all[i]["pull"]["rows"], all[i - 1]["pull"]["rows"]);
    EXPECT_NEAR(all[i]["seconds"].get<double>(),
                all[i]["elapsed"].get<double>() - all[i - 1]["elapsed"].get<double>(), 1e-9);
  }
}

TEST_P(MetricsOfAJob, AreNotWrittenUnlessRequested) {
  run("0s");
  EXPECT_FALSE(std::filesystem::exists(directory_ / "metrics.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(directory_ / "summary.txt"));
}

TEST_P(MetricsOfAJob, WarnsOnceForEachUnwritableFile) {
  std::filesystem::create_directories(directory_ / "metrics.jsonl" / "in the way");
  const LogText log;
  run("1ms");
  EXPECT_EQ(count_of("metrics.jsonl: Is a directory", log.text()), 1);
}

INSTANTIATE_TEST_SUITE_P(Networks, MetricsOfAJob, testing::Values(Network::loop, Network::ucx),
                         [](const auto& network) { return network.param == Network::loop ? "loop" : "ucx"; });

}  // namespace
}  // namespace capstan
