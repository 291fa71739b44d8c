// role_file_test.cpp -- parses role files of lines WHERE ROLE.
#include "cluster/roles/role_file.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>

#include "capstan/error.hpp"
#include "support/expect_error.hpp"

namespace capstan::cluster {
namespace {

const std::vector<std::string> kHosts{"n1", "n1", "n1", "n2", "n2", "n3"};

/// Returns one letter for each rank, the initial of its role.
std::string roles(const std::string& text) {
  std::string letters;
  for (const Role role : parse_role_file("roles", text, kHosts))
    letters += "CPWES"[static_cast<std::size_t>(role)];
  return letters;
}

void expect_refused(const std::string& text, const std::string& message) {
  try {
    // Records a failure only if roles() throws nothing.
    ADD_FAILURE() << roles(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_EQ(std::string(error.what()), message);
  }
}

TEST(RoleFile, AcceptsRanksHostsAndDefault) {
  EXPECT_EQ(roles("0 coordinator\n1-2,4 worker\n3 ps\n5 evaluator\n"), "CWWPWE");
  EXPECT_EQ(roles("0 chief\nhost=n[2-3] ps\n* worker"), "CWWPPP");
  EXPECT_EQ(roles("* worker\nhost=n2 ps\n4 spare\n0 chief\n"), "CWWPSW")
      << "ranks override hosts, and both override the default";
  EXPECT_EQ(roles("# what follows\n\n  0 coordinator # the first\n* worker"), "CWWWWW");
}

TEST(RoleFile, ErrorsNameTheLineOrTheRank) {
  expect_refused("0 coordinator\n",
                 "roles: no line gives rank 1 on n1 a role; to make all other ranks workers, add "
                 "\"* worker\"");
  expect_refused("0 coordinator\n1\n", "roles:2: expected WHERE ROLE, such as \"1-4 worker\"");
  expect_refused("0 coordinator ps\n", "roles:1: expected WHERE ROLE, such as \"1-4 worker\"");
  expect_refused("0 server",
                 "roles:1: \"server\" is not a role: expected coordinator, ps, worker, evaluator or spare");
  expect_refused("6 ps", "roles:1: there is no rank 6: the job has 6 ranks, numbered from 0");
  expect_refused("x ps", "roles:1: \"x\" is not a rank: expected ranks (0, 1-3, 0,4-6), host=NAME, or *");
  expect_refused("1, ps", "roles:1: \"\" is not a rank: expected ranks (0, 1-3, 0,4-6), host=NAME, or *");
  expect_refused("-1 ps", "roles:1: \"\" is not a rank: expected ranks (0, 1-3, 0,4-6), host=NAME, or *");
  expect_refused("3-1 ps", "roles:1: \"3-1\": expected the lower rank first");
  expect_refused("1 ps\n0-2 worker", "roles:2: rank 1 is also on line 1");
  expect_refused("host=n9 ps", "roles:1: no rank is on host n9");
  expect_refused("host=n2 ps\nhost=n[1-2] ps", "roles:2: host n2 is also on line 1");
  expect_refused("* ps\n* worker", "roles:2: found a second line for \"*\", expected one");
}

TEST(RoleFile, NamesAMissingFile) {
  expect_error_naming(Code::not_found, {"--role-file /nowhere/roles", "rank 0", "n1"},
                      [] { (void)read_role_file("/nowhere/roles", kHosts); });
}

}  // namespace
}  // namespace capstan::cluster
