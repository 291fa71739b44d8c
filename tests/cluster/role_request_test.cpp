// role_request_test.cpp -- roles requested by --ps, --workers, --evaluator and --roles.
#include <gtest/gtest.h>

#include "base/settings.hpp"
#include "capstan/error.hpp"
#include "cluster/roles/role_map.hpp"

namespace capstan::cluster {
namespace {

std::string request(const std::vector<std::pair<std::string, std::string>>& flags) {
  Settings settings;
  for (const auto& [name, value] : flags) settings.set_from_flag(name, value);
  return RoleRequest::from(settings).text();
}

TEST(RoleRequest, IsEmptyByDefault) { EXPECT_EQ(request({}), "ps=0 workers=0 evaluator=0"); }

TEST(RoleRequest, EachFlagSetsItsRole) {
  EXPECT_EQ(request({{"ps", "3"}}), "ps=3 workers=0 evaluator=0");
  EXPECT_EQ(request({{"spares", "2"}}), "ps=0 workers=0 evaluator=0 spares=2");
  EXPECT_EQ(request({{"workers", "5"}, {"evaluator", "true"}}), "ps=0 workers=5 evaluator=1");
}

TEST(RoleRequest, ReplicasAreAdditionalSpares) {
  EXPECT_EQ(request({{"replicas-of-ps", "2"}}), "ps=0 workers=0 evaluator=0 replicas-of-ps=2");
  EXPECT_EQ(request({{"roles", "ps:2"}, {"replicas-of-ps", "2"}}),
            "ps=2 workers=0 evaluator=0 replicas-of-ps=2");
  EXPECT_THROW(request({{"spares", "1"}, {"replicas-of-ps", "2"}}), Error);
}

TEST(RoleRequest, RolesFlagOverridesTheOtherFlags) {
  EXPECT_EQ(request({{"roles", "coordinator:1,ps:4,worker:*"}}), "ps=4 workers=0 evaluator=0");
  EXPECT_EQ(request({{"roles", "chief:1,ps:2,worker:3,evaluator:1"}}), "ps=2 workers=3 evaluator=1");
  EXPECT_EQ(request({{"roles", "ps:2,spare:1"}}), "ps=2 workers=0 evaluator=0 spares=1");
  EXPECT_EQ(request({{"roles", "worker:2"}}), "ps=0 workers=2 evaluator=0");
  EXPECT_EQ(request({{"roles", "ps:1,evaluator:0"}, {"ps", "9"}, {"evaluator", "true"}}),
            "ps=1 workers=0 evaluator=0");
}

TEST(RoleRequest, CountOnTheCommandLineReplacesTheProgramsRoles) {
  Settings settings;
  settings.set_from_program("roles", "ps:4,worker:2");
  EXPECT_EQ(RoleRequest::from(settings).text(), "ps=4 workers=2 evaluator=0");
  settings.set_from_program("ps", "3");
  EXPECT_EQ(RoleRequest::from(settings).text(), "ps=4 workers=2 evaluator=0");
  settings.set_from_flag("ps", "1");
  EXPECT_EQ(RoleRequest::from(settings).text(), "ps=1 workers=0 evaluator=0");
}

TEST(RoleRequest, ParsesThePlacementOfPs) {
  EXPECT_EQ(request({{"role-map", "pack"}}), "ps=0 workers=0 evaluator=0 role-map=pack");
  EXPECT_EQ(request({{"roles", "ps:local,worker:*"}}), "ps=0 workers=0 evaluator=0 role-map=local");
  EXPECT_EQ(request({{"roles", "ps:2"}, {"role-map", "dedicated"}}),
            "ps=2 workers=0 evaluator=0 role-map=dedicated");
  EXPECT_EQ(request({{"role-file", "roles.txt"}}), "ps=0 workers=0 evaluator=0 role-file=roles.txt");
}

TEST(RoleRequest, ParsesNamesOfRoles) {
  EXPECT_EQ(role_named("chief"), Role::coordinator);
  EXPECT_EQ(role_named("coordinator"), Role::coordinator);
  EXPECT_EQ(role_named("spare"), Role::spare);
  EXPECT_EQ(role_named(""), std::nullopt);
  EXPECT_EQ(role_named("Worker"), std::nullopt);
}

TEST(RoleRequest, RejectsMalformedRolesWithAReason) {
  const std::pair<const char*, const char*> bad[] = {
      {"ps", "\"ps\" has no count"},
      {"ps:2,", "\"\" has no count"},
      {",ps:2", "\"\" has no count"},
      {"ps:x", "\"x\" is not a valid count"},
      {"ps:", "\"\" is not a valid count"},
      {"ps:2x", "\"2x\" is not a valid count"},
      {"ps:-1", "\"-1\" is not a valid count"},
      {"ps:2147483647", "\"2147483647\" is not a valid count"},
      {"ps:99999999999", "\"99999999999\" is not a valid count"},
      {"ps:*", "only worker may be *"},
      {"coordinator:*", "only worker may be *"},
      {"coordinator:2", "the count of coordinator must be 1"},
      {"coordinator:0", "the count of coordinator must be 1"},
      {"ps:0", "there must be at least one ps"},
      {"worker:0", "there must be at least one worker"},
      {"evaluator:2", "the count of evaluator must be 0 or 1"},
      {"server:1", "\"server\" is not a role"},
      {"ps :1", "\"ps \" is not a role"},
      {"ps:1,ps:2", "\"ps\" occurs twice"},
      {"chief:1,coordinator:1", "\"coordinator\" occurs twice"},
  };
  for (const auto& [text, reason] : bad) {
    try {
      ADD_FAILURE() << text << " became " << request({{"roles", text}});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      EXPECT_EQ(std::string(error.what()),
                "roles \"" + std::string(text) + "\": " + reason +
                    "; expected ROLE:COUNT,... with roles coordinator, ps, worker, evaluator, spare, such as "
                    "\"coordinator:1,ps:4,worker:*\"");
    }
  }
}

}  // namespace
}  // namespace capstan::cluster
