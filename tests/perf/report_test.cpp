// report_test.cpp -- ratios, rivals and output; a wrong result has no value.
#include "perf/bench/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace capstan::perf {
namespace {

using testing::HasSubstr;
using testing::Not;

Result rate(bool verified) {
  Result result{"lookup call=8", "lookup", 8, "ids a call", "rows/s"};
  result.verified = verified;
  result = rate_result(result, 100, {0.5, 0.25, 1.0});
  result.bound = 400;
  return result;
}

TEST(Report, HigherRatioIsBetter) {
  EXPECT_EQ(rate(true).median, 200);
  EXPECT_EQ(rate(true).p99, 100);
  EXPECT_EQ(rate(true).ratio_to(400), 0.5);
  Result time{"one closure", "one closure", 8, "bytes", "us"};
  time.verified = true;
  time = time_result(time, 1e6, {2e-6, 4e-6, 8e-6});
  EXPECT_DOUBLE_EQ(time.median, 4);
  EXPECT_DOUBLE_EQ(time.p99, 8);
  EXPECT_DOUBLE_EQ(time.ratio_to(2).value(), 0.5);
  EXPECT_FALSE(time.ratio_to(std::nullopt).has_value());
}

TEST(Report, SetsTheBoundOfOneCase) {
  Report report;
  report.add(rate(true));
  Result other = rate(true);
  other.name = "lookup call=16";
  report.add(other);
  report.set_bound("lookup call=16", 100, "stream");
  report.set_bound("no such case", 1, "none");
  EXPECT_EQ(report.results()[0].bound, 400);
  EXPECT_EQ(report.results()[1].bound, 100);
  EXPECT_EQ(report.results()[1].bound_name, "stream");
}

TEST(Report, KeepsTheBestRival) {
  Report report;
  report.add(rate(true));
  report.set_better_rival("lookup call=8", 50, "slow");
  report.set_better_rival("lookup call=8", 100, "fast");
  report.set_better_rival("lookup call=8", 70, "middling");
  report.set_better_rival("no such case", 1, "none");
  EXPECT_EQ(report.results()[0].rival, 100);
  EXPECT_EQ(report.results()[0].rival_name, "fast");

  Result time{"t", "t", 8, "bytes", "us"};
  time = time_result(time, 1, {1});
  report.add(time);
  report.set_better_rival("t", 5, "slow");
  report.set_better_rival("t", 2, "fast");
  report.set_better_rival("t", 3, "middling");
  EXPECT_EQ(report.results()[1].rival_name, "fast");
}

TEST(Report, WrongResultHasNoValue) {
  Report report;
  report.add(rate(false));
  EXPECT_FALSE(report.all_verified());
  const nlohmann::json json = report.to_json({{"host", "n1"}});
  EXPECT_TRUE(json["results"][0]["median"].is_null());
  EXPECT_TRUE(json["results"][0]["ratio_to_bound"].is_null());
  EXPECT_EQ(json["results"][0]["verified"], false);
  std::ostringstream text;
  report.print(text, {{"host", "n1"}});
  EXPECT_THAT(text.str(), HasSubstr("WRONG"));
  EXPECT_THAT(text.str(), Not(HasSubstr("200")));
}

TEST(Report, TextHasSizeAndValueColumns) {
  Report report;
  report.add(rate(true));
  std::ostringstream text;
  report.print(text, {{"host", "n1"}});
  EXPECT_THAT(text.str(), HasSubstr("# host: n1\n"));
  EXPECT_THAT(text.str(), testing::ContainsRegex("\n8 +200.0 +100.0 +400.0 +0.500 "));
}

TEST(Report, JsonHasTheNamedFields) {
  Report report;
  report.add(rate(true));
  report.set_better_rival("lookup call=8", 50, "MPI_Get");
  const nlohmann::json result = report.to_json({{"host", "n1"}})["results"][0];
  EXPECT_EQ(result["case"], "lookup call=8");
  EXPECT_EQ(result["unit"], "rows/s");
  EXPECT_EQ(result["median"], 200);
  EXPECT_EQ(result["p99"], 100);
  EXPECT_EQ(result["bound"], 400);
  EXPECT_EQ(result["ratio_to_bound"], 0.5);
  EXPECT_EQ(result["rival_name"], "MPI_Get");
  EXPECT_EQ(result["rival"], 50);
  EXPECT_EQ(result["ratio_to_rival"], 4);
  EXPECT_EQ(result["verified"], true);
}

TEST(Report, CsvHasALineForEachResult) {
  Report report;
  report.add(rate(true));
  report.add(rate(false));
  report.set_better_rival("lookup call=8", 50, "MPI_Get, \"one\" per row");
  std::ostringstream csv;
  report.print_csv(csv);
  EXPECT_EQ(
      csv.str(),
      "case,size,size_unit,unit,median,p99,bound,bound_name,rival,rival_name,verified\n"
      "\"lookup call=8\",8,\"ids a call\",\"rows/s\",200,100,400,\"\",50,\"MPI_Get, \"\"one\"\" per "
      "row\",true\n"
      "\"lookup call=8\",8,\"ids a call\",\"rows/s\",,,400,\"\",50,\"MPI_Get, \"\"one\"\" per row\",false\n");
}

TEST(Report, KeepsOnlyTheChosenCases) {
  Report report("call=8");
  Result other = rate(true);
  other.name = "lookup call=16";
  report.add(other);
  report.add(rate(true));
  ASSERT_EQ(report.results().size(), 1U);
  EXPECT_EQ(report.results()[0].name, "lookup call=8");
}

}  // namespace
}  // namespace capstan::perf
