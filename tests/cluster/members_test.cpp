// members_test.cpp -- ranks that do not fit together are rejected with their number and host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/error.hpp"
#include "capstan/serialize.hpp"
#include "cluster/roles/role_map.hpp"

namespace capstan::cluster {
namespace {

std::vector<Hello> hellos(std::size_t count, const RoleRequest& roles = {}) {
  std::vector<Hello> out;
  for (std::size_t rank = 0; rank < count; ++rank) {
    out.push_back({"node" + std::to_string(rank / 2),
                   static_cast<std::int64_t>(100 + rank),
                   0xabcdU,
                   roles,
                   {std::byte(rank)},
                   {std::byte(rank + 50)}});
  }
  return out;
}

void expect_refused(const std::vector<Hello>& all, Code code, const std::string& text) {
  try {
    (void)make_members(all);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_EQ(error.what(), text);
  }
}

TEST(Members, ContainTheHellosOfTheirRanks) {
  const auto members = make_members(hellos(4));
  ASSERT_EQ(members.size(), 4U);
  const std::vector<Role> roles{Role::coordinator, Role::ps, Role::worker, Role::worker};
  for (std::size_t rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(members[rank].rank, static_cast<int>(rank));
    EXPECT_EQ(members[rank].role, roles[rank]);
    EXPECT_EQ(members[rank].host, "node" + std::to_string(rank / 2));
    EXPECT_EQ(members[rank].pid, static_cast<std::int64_t>(100 + rank));
    EXPECT_EQ(members[rank].control_address, std::vector{std::byte(rank)});
    EXPECT_EQ(members[rank].data_address, std::vector{std::byte(rank + 50)});
  }
  EXPECT_EQ(members[1].name(), "ps 0 (rank 1 on node0)");
  EXPECT_EQ(members[3].name(), "worker 1 (rank 3 on node1)");
}

TEST(Members, GetTheRequestedRoles) {
  const auto members = make_members(hellos(6, {.ps = 2, .workers = 2, .evaluator = true}));
  int ps = 0;
  for (const Member& member : members) ps += member.role == Role::ps;
  EXPECT_EQ(ps, 2);
  EXPECT_EQ(members[5].role, Role::evaluator);
}

TEST(Members, RejectsARankWithAnotherBuild) {
  auto all = hellos(5);
  all[3].build = 1;
  expect_refused(all, Code::failed_precondition,
                 "rank 3 on node1 runs a different build than rank 0 on node0: start every rank from the "
                 "same binary (is an old copy first in PATH there?)");
}

TEST(Members, RejectsARankWithOtherReplicas) {
  auto all = hellos(5);
  all[3].replicas = 2;
  expect_refused(
      all, Code::invalid_argument,
      "Mismatched number of replicas per worker: rank 3 on node1 was told 2, rank 0 was told 1; give "
      "every rank the same --replicas");
}

TEST(Members, RejectsARankWithAnotherLimitOfRestarts) {
  auto all = hellos(5);
  all[3].restarts = 2;
  expect_refused(all, Code::failed_precondition,
                 "rank 3 on node1 restarts a worker up to 2 times, rank 0 up to 0 times: give every rank the "
                 "same --max-restarts");
  all = hellos(4);
  all[1].coordinator_wait = 5000;
  expect_refused(
      all, Code::failed_precondition,
      "rank 1 on node0 waits 5000 ms for a coordinator that was killed, rank 0 0 ms: give every rank the "
      "same --coordinator-wait");
}

TEST(Members, EveryJobHasASecretInItsTable) {
  const Table table = make_table(hellos(4));
  EXPECT_EQ(table.members.size(), 4U);
  EXPECT_FALSE(table.secret == transport::JobSecret());
  EXPECT_FALSE(table.secret == make_table(hellos(4)).secret);
  EXPECT_TRUE(from_bytes<Table>(to_bytes(table)).secret == table.secret);
}

TEST(Members, EveryRestartOfEveryWorkerHasItsOwnRank) {
  Table table;
  table.restarts = 3;
  table.members = make_members(hellos(6));
  const int workers = table.count(Role::worker);
  ASSERT_GE(workers, 2);
  EXPECT_EQ(table.capacity(), 6 + 3 * workers);
  int next = 6;
  for (int index = 0; index < workers; ++index) {
    for (int time = 1; time <= 3; ++time, ++next) {
      EXPECT_EQ(table.rank_of_restart(index, time), next);
      EXPECT_EQ(table.index_of_restart(next), index);
      EXPECT_EQ(table.times_restarted(next), time);
    }
  }
  EXPECT_EQ(table.times_restarted(5), 0);
}

TEST(Members, LateWorkersHaveNewRanksAndIndices) {
  for (const int restarts : {0, 3}) {
    Table table;
    table.restarts = restarts;
    table.late = 4;
    table.members = make_members(hellos(6));
    const int workers = table.count(Role::worker);
    const int first = 6 + restarts * workers;
    EXPECT_EQ(table.capacity(), first + 4);
    EXPECT_FALSE(table.is_late(first - 1));
    for (int time = 1; time <= 4; ++time) {
      const int rank = table.rank_of_late(time);
      EXPECT_EQ(rank, first + time - 1);
      EXPECT_TRUE(table.is_late(rank));
      EXPECT_EQ(table.index_of(rank), workers + time - 1);
      EXPECT_EQ(table.times_restarted(rank), restarts) << "no further restarts";
    }
    if (restarts > 0) {
      EXPECT_EQ(table.index_of(table.rank_of_restart(1, 2)), 1);
    }
  }
}

TEST(Members, RejectsARankWithAnotherLimitOfLateWorkers) {
  auto all = hellos(5);
  all[3].late = 16;
  expect_refused(all, Code::failed_precondition,
                 "rank 3 on node1 has room for 16 late workers, rank 0 for 0: give every rank the same "
                 "--run-dir and --late-workers");
}

TEST(Members, RejectsARankWithOtherRoles) {
  auto all = hellos(5);
  all[4].roles.ps = 2;
  expect_refused(all, Code::failed_precondition,
                 "rank 4 on node2 was told ps=2 workers=0 evaluator=0, rank 0 was told ps=0 workers=0 "
                 "evaluator=0: give every rank the same settings");
}

/// Returns one rank for each role.
std::vector<Hello> given(const std::vector<std::string>& roles) {
  auto all = hellos(roles.size());
  for (std::size_t rank = 0; rank < roles.size(); ++rank) all[rank].own_role = roles[rank];
  return all;
}

TEST(Members, AcceptAnExplicitRoleForEachRank) {
  const auto members = make_members(given({"chief", "worker", "ps", "worker", "ps", "evaluator", "spare"}));
  std::string names;
  for (const Member& member : members)
    names += std::string(to_string(member.role)) + std::to_string(member.index) + " ";
  EXPECT_EQ(names, "coordinator0 worker0 ps0 worker1 ps1 evaluator0 spare0 ");
}

TEST(Members, RejectsExplicitRolesThatFormNoCluster) {
  expect_refused(
      given({"coordinator", "", "ps", "worker"}), Code::invalid_argument,
      "rank 1 on node0 was given no --role, rank 0 --role coordinator: give a --role to every rank "
      "or to none");
  expect_refused(given({"ps", "coordinator", "worker"}), Code::invalid_argument,
                 "--role or TF_CONFIG: rank 0 is a ps, expected the coordinator; put the coordinator first");
  expect_refused(given({"ps", "ps", "worker"}), Code::invalid_argument,
                 "--role or TF_CONFIG: no rank is the coordinator");
  expect_refused(given({"coordinator", "chief", "ps", "worker"}), Code::invalid_argument,
                 "--role or TF_CONFIG: found 2 coordinators, expected one");
  expect_refused(given({"coordinator", "worker", "worker"}), Code::invalid_argument,
                 "--role or TF_CONFIG: no rank is a ps");
  expect_refused(given({"coordinator", "ps"}), Code::invalid_argument,
                 "--role or TF_CONFIG: no rank is a worker");
  expect_refused(given({"coordinator", "ps", "worker", "evaluator", "evaluator"}), Code::invalid_argument,
                 "--role or TF_CONFIG: found 2 evaluators, expected at most one");
  auto all = given({"coordinator", "ps", "worker", "worker"});
  for (Hello& hello : all) hello.roles.ps = 2;
  expect_refused(all, Code::invalid_argument,
                 "--role or TF_CONFIG: 1 ranks are ps, but --ps is 2; omit --ps");
  for (Hello& hello : all) hello.roles = {.placement = PsPlacement::pack};
  expect_refused(
      all, Code::invalid_argument,
      "--role or TF_CONFIG: every rank has its role already; leave --role-map and --role-file out");
  for (Hello& hello : all) hello.roles = {.evaluator = true};
  expect_refused(all, Code::invalid_argument,
                 "--role or TF_CONFIG: 0 ranks are evaluator, but --evaluator is 1; omit --evaluator");
  for (Hello& hello : all) hello.roles = {.replicas = true};
  expect_refused(
      all, Code::invalid_argument,
      "--role or TF_CONFIG: --replicas-of-ps 2 selects the ranks of the replicas itself; omit one of the "
      "two");
}

TEST(Members, RejectsRolesThatDoNotFitTheRanks) {
  EXPECT_THROW((void)make_members(hellos(2)), Error);
  EXPECT_THROW((void)make_members(hellos(4, {.ps = 3})), Error);
}

}  // namespace
}  // namespace capstan::cluster
