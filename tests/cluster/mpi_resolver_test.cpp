// mpi_resolver_test.cpp -- the members of a cluster as TensorFlow's tasks.
// Tests: src/cluster/resolvers/cluster_resolver.cpp
#include <gmock/gmock.h>

#include "capstan/resolvers.hpp"
#include "cluster/runtime.hpp"
#include "support/expect_error.hpp"
#include "transport/loop/loop.hpp"

namespace capstan::cluster {
namespace {

using testing::HasSubstr;

using Strings = std::vector<std::string>;
using Ranks = std::vector<std::shared_ptr<Runtime>>;

Ranks start(const std::string& roles, int ranks, transport::LoopHub& hub) {
  Settings settings;
  settings.set_from_flag("roles", roles);
  return Runtime::as_threads(settings, ranks, hub);
}

MpiClusterResolver resolver_of(const std::shared_ptr<Runtime>& rank, int gpus = 0) {
  MpiOptions options;
  options.process = Environment::of({}, gpus);
  return MpiClusterResolver(Cluster(rank), std::move(options));
}

TEST(MpiResolver, TheCoordinatorIsTheChief) {
  transport::LoopHub hub;
  const Ranks ranks = start("coordinator:1,ps:2,worker:*,evaluator:1", 6, hub);
  const std::string host = host_name();
  const ClusterSpec expected{
      {{"chief", {host}}, {"evaluator", {host}}, {"ps", {host, host}}, {"worker", {host, host}}}};
  std::multiset<std::pair<std::string, int>> tasks;
  for (const auto& rank : ranks) {
    const MpiClusterResolver resolver = resolver_of(rank);
    EXPECT_EQ(resolver.cluster_spec(), expected);
    EXPECT_EQ(resolver.master(), host);
    validate_cluster(resolver);
    tasks.emplace(*resolver.task_type(), *resolver.task_id());
  }
  EXPECT_EQ(tasks, (std::multiset<std::pair<std::string, int>>{
                       {"chief", 0}, {"evaluator", 0}, {"ps", 0}, {"ps", 1}, {"worker", 0}, {"worker", 1}}));
}

TEST(MpiResolver, SpareHasNoTask) {
  transport::LoopHub hub;
  const Ranks ranks = start("coordinator:1,ps:1,worker:1,spare:1", 4, hub);
  int spares = 0;
  for (const auto& rank : ranks) {
    const MpiClusterResolver resolver = resolver_of(rank);
    EXPECT_EQ(resolver.cluster_spec().jobs.size(), 3U);
    if (rank->self().role != Role::spare) continue;
    ++spares;
    EXPECT_EQ(resolver.task_type(), std::nullopt);
    EXPECT_EQ(resolver.task_id(), std::nullopt);
  }
  EXPECT_EQ(spares, 1);
}

TEST(MpiResolver, LateWorkersAreListedByIndex) {
  Table table;
  table.late = 2;
  for (const Role role : {Role::coordinator, Role::ps, Role::worker}) {
    Member member;
    member.rank = static_cast<int>(table.members.size());
    member.role = role;
    member.host = "n" + std::to_string(member.rank);
    table.members.push_back(member);
  }
  transport::LoopHub hub;
  const auto runtime = std::make_shared<Runtime>(Settings{}, table, hub.open(), hub.open());
  const MpiClusterResolver resolver = resolver_of(runtime);
  EXPECT_EQ(resolver.cluster_spec(), (ClusterSpec{{{"chief", {"n0"}}, {"ps", {"n1"}}, {"worker", {"n2"}}}}));
  Member second;
  second.rank = table.rank_of_late(2);
  second.index = 2;
  second.host = "n7";
  runtime->membership().add(second, MemberState::alive);
  EXPECT_EQ(resolver.cluster_spec().jobs["worker"], (Strings{"n2", "", "n7"}));
  EXPECT_EQ(resolver.master("worker", 2), "n7");

  table.rank = second.rank;
  second.role = Role::worker;
  const auto own = std::make_shared<Runtime>(Settings{}, table, hub.open(), hub.open(), second);
  EXPECT_EQ(resolver_of(own).cluster_spec(), resolver.cluster_spec());
  EXPECT_EQ(resolver_of(own).task_id(), 2);
}

TEST(MpiResolver, OneProcessHasAllRoles) {
  const MpiClusterResolver resolver = resolver_of(Runtime::embedded_cluster(Settings{}), 3);
  validate_cluster(resolver);
  EXPECT_EQ(resolver.task_type(), "chief");
  EXPECT_EQ(resolver.num_accelerators(), (std::map<std::string, int>{{"GPU", 3}}));
  EXPECT_THAT(
      error_of(Code::failed_precondition, [&] { static_cast<void>(resolver.num_accelerators("ps", 0)); }),
      HasSubstr("only ps 0 itself"));
}

TEST(MpiResolver, SupportsSettersAndRpcLayer) {
  transport::LoopHub hub;
  const Ranks ranks = start("coordinator:1,ps:1,worker:1", 3, hub);
  MpiClusterResolver resolver = resolver_of(ranks[0]);
  resolver.set_task_type("ps");
  resolver.set_rpc_layer("ucx");
  EXPECT_EQ(resolver.task_type(), "ps");
  EXPECT_EQ(resolver.task_id(), 0);
  EXPECT_EQ(resolver.master(), "ucx://" + host_name());
}

}  // namespace
}  // namespace capstan::cluster
