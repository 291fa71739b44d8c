// slurm_lists_test.cpp -- parses Slurm's compressed lists, and rejects malformed ones.
#include "cluster/resolvers/slurm_lists.hpp"

#include <gmock/gmock.h>

#include "support/expect_error.hpp"

namespace capstan::cluster {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> hosts(const std::string& text) { return expand_hosts("LIST", text); }
std::vector<int> counts(const std::string& text) { return expand_counts("COUNTS", text); }

TEST(SlurmLists, ExpandsHostsInOrder) {
  EXPECT_THAT(hosts("n1"), ElementsAre("n1"));
  EXPECT_THAT(hosts("n[1-2],m5,o[3-4,6,7-9]"),
              ElementsAre("n1", "n2", "m5", "o3", "o4", "o6", "o7", "o8", "o9"));
  EXPECT_THAT(hosts("n[1-2,10]"), ElementsAre("n1", "n2", "n10"));
  EXPECT_THAT(hosts("b,a"), ElementsAre("b", "a"));
  EXPECT_THAT(hosts("login-1.site_a"), ElementsAre("login-1.site_a"));
}

TEST(SlurmLists, KeepsLeadingZeros) {
  EXPECT_THAT(hosts("n[08-10]"), ElementsAre("n08", "n09", "n10"));
  EXPECT_THAT(hosts("n[001,003-004]"), ElementsAre("n001", "n003", "n004"));
  EXPECT_THAT(hosts("n[9-10]"), ElementsAre("n9", "n10"));
  EXPECT_THAT(hosts("n[0-1]"), ElementsAre("n0", "n1"));
  EXPECT_THAT(hosts("n[00-01]"), ElementsAre("n00", "n01"));
  EXPECT_THAT(hosts("n[98-100]"), ElementsAre("n98", "n99", "n100"));
  EXPECT_THAT(hosts("n[099-100]"), ElementsAre("n099", "n100"));
}

TEST(SlurmLists, ExpandsSeveralBracketsToAllCombinations) {
  EXPECT_THAT(hosts("r[0-1]n[1-2]"), ElementsAre("r0n1", "r0n2", "r1n1", "r1n2"));
  EXPECT_THAT(hosts("r[1][2-3]-ib,x"), ElementsAre("r12-ib", "r13-ib", "x"));
}

TEST(SlurmLists, ExpandsTasksPerHost) {
  EXPECT_THAT(counts("1"), ElementsAre(1));
  EXPECT_THAT(counts("3(x2),2,1"), ElementsAre(3, 3, 2, 1));
  EXPECT_THAT(counts("2,1(x1)"), ElementsAre(2, 1));
  EXPECT_EQ(counts("128(x4096)").size(), 4096U);
}

TEST(SlurmLists, CountsNumbers) {
  EXPECT_EQ(count_numbers("GPUS", "0"), 1);
  EXPECT_EQ(count_numbers("GPUS", "0,2,4-7"), 6);
}

struct Malformed {
  const char* text;
  int character;
  const char* expected;
};

TEST(SlurmLists, RejectsMalformedHostsWithTheirPosition) {
  const Malformed all[] = {{"", 1, "a host's name"},
                           {",a", 1, "a host's name"},
                           {"a,", 3, "a host's name"},
                           {"a,,b", 3, "a host's name"},
                           {"a b", 2, "',' or '[' or the end"},
                           {"n]", 2, "',' or '[' or the end"},
                           {"n(x2)", 2, "',' or '[' or the end"},
                           {"n[", 3, "a number"},
                           {"n[]", 3, "a number"},
                           {"n[-3]", 3, "a number"},
                           {"n[a]", 3, "a number"},
                           {"n[1,]", 5, "a number"},
                           {"n[1,,2]", 5, "a number"},
                           {"n[[1]]", 3, "a number"},
                           {"n[1", 4, "',', '-' or ']'"},
                           {"n[1-2", 6, "',', '-' or ']'"},
                           {"n[1 ]", 4, "',', '-' or ']'"},
                           {"n[1-2-3]", 6, "',', '-' or ']'"},
                           {"n[1-]", 5, "the last number of the range"},
                           {"n[1-,2]", 5, "the last number of the range"},
                           {"n[3-1]", 5, "a number that is not below 3"},
                           {"n[8-010]", 5, "as many digits as in 8"},
                           {"n[1-0000000002]", 5, "at most 9 digits"},
                           {"m,n[0-65536]", 7, "at most 65536 numbers in all"},
                           {"n[0-999]x[0-999]", 1, "at most 65536 hosts"},
                           {"a,n[0-65535]", 3, "at most 65536 hosts"}};
  for (const Malformed& one : all) {
    const std::string text = error_of(Code::invalid_argument, [&] { hosts(one.text); });
    EXPECT_THAT(text, HasSubstr("LIST=\"" + std::string(one.text) + "\""));
    EXPECT_THAT(text, HasSubstr("at character " + std::to_string(one.character) + " ")) << one.text;
    EXPECT_THAT(text, HasSubstr("expected " + std::string(one.expected))) << one.text;
  }
  EXPECT_EQ(error_of(Code::invalid_argument, [] { hosts("n[1-"); }),
            "LIST=\"n[1-\": at character 5 it ends; expected the last number of the range");
  EXPECT_EQ(error_of(Code::invalid_argument, [] { hosts("n[x]"); }),
            "LIST=\"n[x]\": at character 3 'x'; expected a number");
}

TEST(SlurmLists, RejectsMalformedCountsWithTheirPosition) {
  const Malformed all[] = {{"", 1, "a number of tasks"},
                           {"x2", 1, "a number of tasks"},
                           {"-1", 1, "a number of tasks"},
                           {"2,", 3, "a number of tasks"},
                           {"2,,1", 3, "a number of tasks"},
                           {"0", 1, "at least one task"},
                           {"2(", 3, "\"x\" and a number of hosts"},
                           {"2(3)", 3, "\"x\" and a number of hosts"},
                           {"2(x)", 4, "a number of hosts"},
                           {"2(x0)", 4, "a number of hosts from 1 to 65536"},
                           {"2(x65537)", 4, "a number of hosts from 1 to 65536"},
                           {"2(x3", 5, "')'"},
                           {"2(x3,1", 5, "')'"},
                           {"2 ", 2, "',' or \"(x\" or the end"},
                           {"2(x3)1", 6, "',' or \"(x\" or the end"},
                           {"1,1(x65536)", 3, "at most 65536 hosts"},
                           {"1234567890", 1, "at most 9 digits"}};
  for (const Malformed& one : all) {
    const std::string text = error_of(Code::invalid_argument, [&] { counts(one.text); });
    EXPECT_THAT(text, HasSubstr("COUNTS=\"" + std::string(one.text) + "\""));
    EXPECT_THAT(text, HasSubstr("at character " + std::to_string(one.character) + " ")) << one.text;
    EXPECT_THAT(text, HasSubstr("expected " + std::string(one.expected))) << one.text;
  }
  EXPECT_THAT(error_of(Code::invalid_argument, [] { count_numbers("GPUS", "0;1"); }),
              HasSubstr("GPUS=\"0;1\": at character 2 ';'; expected"));
}

TEST(SlurmLists, ErrorsTruncateALongList) {
  const std::string text = error_of(Code::invalid_argument, [] { hosts(std::string(5000, 'n') + "["); });
  EXPECT_LT(text.size(), 200U);
  EXPECT_THAT(text, HasSubstr("nnn...\": at character 5002 it ends"));
}

}  // namespace
}  // namespace capstan::cluster
