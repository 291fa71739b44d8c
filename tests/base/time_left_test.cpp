// time_left_test.cpp -- parsing of squeue's output.
#include "base/time_left.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace capstan {
namespace {

TEST(TimeLeft, ParsesTheOutputOfSqueue) {
  const std::vector<std::pair<std::string, int>> table{
      {"0:00", 0},         {"0:59\n", 59},        {" 12:34", 12 * 60 + 34},          {"1:00:01", 3601},
      {"23:59:59", 86399}, {"1-00:00:00", 86400}, {"10-01:02:03", 10 * 86400 + 3723}};
  for (const auto& [text, seconds] : table) {
    const TimeLeft left = parse_time_left(text);
    EXPECT_TRUE(left.known) << text;
    ASSERT_TRUE(left.left) << text;
    EXPECT_EQ(left.left->count(), seconds) << text;
  }
}

TEST(TimeLeft, UnlimitedMeansNoLimit) {
  EXPECT_TRUE(parse_time_left("UNLIMITED\n").known);
  EXPECT_FALSE(parse_time_left("UNLIMITED\n").left);
}

TEST(TimeLeft, IsUnknownForOtherText) {
  for (const std::string text :
       {"", "\n", "INVALID", "NOT_SET", "5", "1:2:3:4", "1:x", "-1:00", "1-02", "1-02:03", "x-02:03:04", "1-",
        ":", "1:-2", "slurm_load_jobs error: Invalid job id specified", "99999999999999999999:00"}) {
    EXPECT_FALSE(parse_time_left(text).known) << text;
  }
}

TEST(TimeLeft, HasNoLimitOutsideOfSlurm) {
  unsetenv("SLURM_JOB_ID");
  EXPECT_TRUE(slurm_time_left().known);
  EXPECT_FALSE(slurm_time_left().left);
}

}  // namespace
}  // namespace capstan
