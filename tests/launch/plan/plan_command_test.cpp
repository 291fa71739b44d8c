// plan_command_test.cpp -- options and output of `capstan plan`.
// Tests: launch/plan/command_line.cpp
// Tests: launch/plan/request.hpp
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "capstan/error.hpp"
#include "launch/command_line.hpp"
#include "launch/plan/quantities.hpp"
#include "launch/plan/report.hpp"
#include "launch/plan/run.hpp"

namespace capstan::launch {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kPlanJob{"--workers", "100", "--rows",  "1e9",
                                        "--dim",     "64",  "--batch", "4096"};

CommandLine parse_plan(std::vector<std::string> more, std::vector<std::string> job = kPlanJob) {
  std::vector<const char*> words{"capstan", "plan"};
  job.insert(job.end(), more.begin(), more.end());
  for (const std::string& word : job) words.push_back(word.c_str());
  const char* environment[] = {nullptr};
  return parse_command_line(static_cast<int>(words.size()), words.data(), environment);
}

/// Returns the message of the error, which must be invalid_argument.
std::string rejection(const std::vector<std::string>& more, const std::vector<std::string>& job = kPlanJob) {
  try {
    (void)parse_plan(more, job);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return {};
}

TEST(PlanCommand, ReadsTheJob) {
  const CommandLine line =
      parse_plan({"--compute-time", "2.5ms", "--links", "2", "--bandwidth", "200Gb/s", "--rdma", "--mode",
                  "stale", "--staleness", "3", "--slots", "2", "--ps-memory", "64GB", "--zipf", "1.1"});
  EXPECT_EQ(line.action, Action::plan);
  const simulate::PlanRequest& plan = line.plan.plan;
  EXPECT_EQ(plan.job.workers, 100);
  EXPECT_EQ(plan.rows, 1e9);
  EXPECT_EQ(plan.job.dim, 64);
  EXPECT_EQ(plan.job.batch, 4096);
  EXPECT_DOUBLE_EQ(plan.job.compute, 2.5e-3);
  EXPECT_DOUBLE_EQ(plan.job.host.bandwidth, 50e9);
  EXPECT_TRUE(plan.job.rdma);
  EXPECT_EQ(plan.job.staleness, 3);
  EXPECT_EQ(plan.row_factor, 3);
  EXPECT_DOUBLE_EQ(plan.ps_memory, 64e9);
  EXPECT_DOUBLE_EQ(plan.zipf, 1.1);
  EXPECT_EQ(parse_plan({}).plan.plan.job.staleness, -1);
  EXPECT_EQ(parse_plan({"--mode", "synchronous"}).plan.plan.job.staleness, 0);
}

TEST(PlanCommand, RejectsBadValuesAndNamesTheOption) {
  EXPECT_THAT(rejection({}, {"--workers", "8", "--dim", "4", "--batch", "2"}), HasSubstr("--rows"));
  EXPECT_THAT(rejection({"--bandwidth", "100"}), HasSubstr("--bandwidth: expected a number with Gb/s"));
  EXPECT_THAT(rejection({"--bandwidth", "0Gb/s"}), HasSubstr("above 0"));
  EXPECT_THAT(rejection({"--compute-time", "5"}), HasSubstr("--compute-time"));
  EXPECT_THAT(rejection({"--compute-time", "-5ms"}), HasSubstr("\"-5ms\""));
  EXPECT_THAT(rejection({"--ps-memory", "0GB"}), HasSubstr("--ps-memory"));
  EXPECT_THAT(rejection({"--mode", "fast"}), HasSubstr("--mode"));
  EXPECT_THAT(rejection({"--workers", "0"}), HasSubstr("--workers"));
  EXPECT_THAT(rejection({"--links", "0"}), HasSubstr("--links"));
  EXPECT_THAT(rejection({"--zipf", "-1"}), HasSubstr("--zipf"));
}

TEST(PlanCommand, RejectsOptionsThatExcludeEachOther) {
  EXPECT_THAT(rejection({"--staleness", "3"}), HasSubstr("--staleness: expected --mode stale"));
  EXPECT_THAT(rejection({"--staleness", "3", "--mode", "synchronous"}),
              HasSubstr("found --mode synchronous"));
  const std::vector<std::vector<std::string>> between_hosts{
      {"--rdma"},           {"--bandwidth", "1Gb/s"},    {"--links", "2"},
      {"--latency", "1us"}, {"--workers-per-host", "2"}, {"--ps-per-host", "2"}};
  for (std::vector<std::string> options : between_hosts) {
    EXPECT_TRUE(parse_plan(options).action == Action::plan) << options.front();
    options.push_back("--one-host");
    EXPECT_THAT(rejection(options), HasSubstr(options.front() + ": found with --one-host"));
  }
}

TEST(PlanCommand, QuantitiesHaveUnits) {
  EXPECT_DOUBLE_EQ(plan::parse_bandwidth("--b", "100Gb/s"), 12.5e9);
  EXPECT_DOUBLE_EQ(plan::parse_bandwidth("--b", "1.5 GB/s"), 1.5e9);
  EXPECT_DOUBLE_EQ(plan::parse_time("--t", "250us"), 250e-6);
  EXPECT_DOUBLE_EQ(plan::parse_size("--s", "2GiB"), 2147483648.0);
  for (const char* text : {"", "ms", "1", "1 m", "nan ms", "inf ms", "1ms2", "1e400 s"})
    EXPECT_THROW(plan::parse_time("--t", text), Error) << text;
  EXPECT_THROW(plan::parse_size("--s", "1e308GB"), Error);
}

TEST(PlanCommand, ReportsThePlanAndItsNeighbors) {
  plan::Request request = parse_plan({"--ps", "4"}).plan;
  const std::string text =
      plan::report(request.plan, simulate::plan_job(request.plan, simulate::Constants()));
  EXPECT_THAT(text, HasSubstr("100 workers, 4 ps: "));
  EXPECT_THAT(text, HasSubstr("bound by: ps"));
  for (const char* line : {"\n  2 ", "\n  4 * ", "\n  8 "}) EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, HasSubstr("64.0 GB"));  // 256 GB of rows on 4 ps
}

TEST(PlanCommand, PrintsJson) {
  plan::Request request = parse_plan({"--ps", "4", "--json"}).plan;
  request.constants = testing::TempDir() + "plan_json.json";
  std::ofstream(request.constants) << R"({"closure": 1e-6})";
  testing::internal::CaptureStdout();
  EXPECT_EQ(plan::run(request), 0);
  const nlohmann::json json = nlohmann::json::parse(testing::internal::GetCapturedStdout());
  EXPECT_EQ(json.at("workers"), 100);
  EXPECT_EQ(json.at("ps"), 4);
  EXPECT_EQ(json.at("ps_bytes"), 64e9);
  EXPECT_EQ(json.at("replaced_constants"), nlohmann::json::array({"closure"}));
  const double step = json.at("step_seconds");
  EXPECT_DOUBLE_EQ(json.at("steps_per_second").get<double>() * step, 100);
  EXPECT_LE(json.at("least_step_seconds").at(json.at("bound_by")), step * 1.01);
  ASSERT_EQ(json.at("others").size(), 2U);
  EXPECT_EQ(json.at("others")[0].at("ps"), 2);
  EXPECT_EQ(json.at("others")[1].at("ps"), 8);
}

TEST(PlanCommand, ABadFileOfConstantsIsNamed) {
  plan::Request request = parse_plan({"--constants", "/no/such/file"}).plan;
  try {
    (void)plan::run(request);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::not_found);
    EXPECT_THAT(error.what(), HasSubstr("/no/such/file"));
  }
  const std::string path = testing::TempDir() + "plan_constants.json";
  std::ofstream(path) << R"({"no_constant": 1})";
  request.constants = path;
  EXPECT_THROW((void)plan::run(request), Error);
}

TEST(PlanCommand, PrintsTheReplacedConstants) {
  plan::Request request = parse_plan({"--ps", "4"}).plan;
  request.constants = testing::TempDir() + "plan_replaced.json";
  std::ofstream(request.constants) << R"({"closure": 1e-6, "step": 2e-6})";
  testing::internal::CaptureStdout();
  EXPECT_EQ(plan::run(request), 0);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              HasSubstr("constants of " + request.constants + ": closure, step\n"));
}

}  // namespace
}  // namespace capstan::launch
