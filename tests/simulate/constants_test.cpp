// constants_test.cpp -- constants from reports of benchmarks and from objects of names and values.
#include "simulate/constants.hpp"

#include <gtest/gtest.h>

#include "capstan/error.hpp"

namespace capstan::simulate {
namespace {

TEST(Constants, EveryOneHasANameAndASource) {
  EXPECT_EQ(constant_table().size(), sizeof(Constants) / sizeof(double));
  for (const ConstantField& field : constant_table()) {
    EXPECT_FALSE(field.name.empty());
    EXPECT_FALSE(field.source.empty()) << field.name;
  }
}

TEST(Constants, AReportOfABenchmarkReplacesThem) {
  Constants constants;
  const auto replaced = read_constants(constants, R"({"results": [
      {"case": "empty closures", "median": 2e6}, {"case": "sgd sparse dim=64", "median": 4e7},
      {"case": "a poll of all rings, which are idle rings=512", "median": 1024}, {"case": "other", "median": 1},
      {"case": "lookup dim=64 ids=uniform call=8192", "median": null}]})");
  EXPECT_EQ(replaced, (std::vector<std::string_view>{"closure", "apply_row", "poll_ring"}));
  EXPECT_DOUBLE_EQ(constants.closure, 5e-7);
  EXPECT_DOUBLE_EQ(constants.apply_row, 25e-9);
  EXPECT_DOUBLE_EQ(constants.poll_ring, 2e-9);
  EXPECT_DOUBLE_EQ(constants.lookup_row, Constants().lookup_row);
}

TEST(Constants, AFileOfPerfRunHasSeveralReports) {
  Constants constants;
  (void)read_constants(constants, R"({"one_host": {
      "perf_push": {"context": {}, "results": [{"case": "push dim=64 ids=uniform call=8192", "median": 1e7}]},
      "perf_schedule": {"results": [{"case": "empty closures", "median": 1e6}]}}, "commands": ["a"]})");
  EXPECT_DOUBLE_EQ(constants.push_row, 1e-7);
  EXPECT_DOUBLE_EQ(constants.closure, 1e-6);
}

TEST(Constants, ResultsBetweenTwoHostsAreLeftOut) {
  Constants constants;
  const auto replaced = read_constants(constants, R"({
      "one_host": {"perf_push": {"results": [{"case": "push dim=64 ids=uniform call=8192", "median": 1e7}]}},
      "two_hosts": {"perf_push": {"results": [{"case": "push dim=64 ids=uniform call=8192", "median": 1e5}]}}})");
  EXPECT_EQ(replaced, std::vector<std::string_view>{"push_row"});
  EXPECT_DOUBLE_EQ(constants.push_row, 1e-7);
}

TEST(Constants, RatesOfSeveralWorkersAreDividedByTheirNumber) {
  Constants constants;
  (void)read_constants(constants,
                       R"x({"context": {"roles": ["coordinator 0 (rank 0 on a)", "ps 0 (rank 1 on a)",
      "worker 0 (rank 2 on a)", "worker 1 (rank 3 on a)"]}, "results": [
      {"case": "lookup dim=64 ids=uniform call=8192", "median": 4e7}, {"case": "empty closures", "median": 1e6}]})x");
  EXPECT_DOUBLE_EQ(constants.lookup_row, 5e-8);
  EXPECT_DOUBLE_EQ(constants.closure, 1e-6);
}

TEST(Constants, AnObjectOfNamesAndValuesReplacesThem) {
  Constants constants;
  EXPECT_EQ(read_constants(constants, R"({"wake_up": 0.25})"), std::vector<std::string_view>{"wake_up"});
  EXPECT_DOUBLE_EQ(constants.wake_up, 0.25);
}

TEST(Constants, BadTextIsRejected) {
  for (const char* text :
       {"", "[]", "{", R"({"no_constant": 1})", R"({"wake_up": -1})", R"({"wake_up": "a"})",
        R"({"results": [{"case": "other", "median": 1}]})", R"({"two_hosts": {"a": {"results": []}}})"}) {
    Constants constants;
    try {
      (void)read_constants(constants, text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument) << text;
    }
  }
}

}  // namespace
}  // namespace capstan::simulate
