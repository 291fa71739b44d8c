// runtime_test.cpp -- runtimes of ranks as threads, and of all roles in one process.
#include "cluster/runtime.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <thread>

#include "capstan/error.hpp"
#include "transport/loop/loop.hpp"
#include "transport/ucx/fabric.hpp"

namespace capstan::cluster {
namespace {

Settings with(const std::vector<std::pair<std::string, std::string>>& flags) {
  Settings settings;
  for (const auto& [name, value] : flags) settings.set_from_flag(name, value);
  return settings;
}

TEST(Runtime, RanksAsThreadsHaveTheRolesOfTheMap) {
  transport::LoopHub hub;
  const auto runtimes = Runtime::as_threads(with({{"ps", "2"}}), 5, hub);
  ASSERT_EQ(runtimes.size(), 5U);
  const std::vector<Role> roles{Role::coordinator, Role::worker, Role::worker, Role::ps, Role::ps};
  for (int rank = 0; rank < 5; ++rank) {
    const auto& runtime = runtimes[static_cast<std::size_t>(rank)];
    EXPECT_EQ(runtime->self().rank, rank);
    EXPECT_EQ(runtime->self().role, roles[static_cast<std::size_t>(rank)]);
    EXPECT_EQ(runtime->members().size(), 5U);
    EXPECT_EQ(runtime->count(Role::ps), 2);
    EXPECT_EQ(runtime->count(Role::worker), 2);
    EXPECT_EQ(runtime->count(Role::evaluator), 0);
    EXPECT_TRUE(runtime->membership().single_host());
    EXPECT_FALSE(runtime->in_process());
    EXPECT_TRUE(runtime->embedded().empty());
    // A ps has one fabric; other ranks have one for control and one for data.
    EXPECT_EQ(&runtime->control() == &runtime->data(), runtime->self().role == Role::ps);
  }
  EXPECT_EQ(runtimes[0]->member(Role::ps, 1).rank, 4);
  EXPECT_EQ(runtimes[4]->self().name(), "ps 1 (rank 4 on " + host_name() + ")");
  EXPECT_EQ(runtimes[2]->log_tag(), "worker 1@" + host_name());
}

TEST(Runtime, PsHasTheAddressOfTheSpareThatReplacedIt) {
  transport::LoopHub hub;
  const auto runtimes = Runtime::as_threads(with({{"ps", "1"}, {"spares", "1"}}), 4, hub);
  Runtime& spare = *runtimes[2];
  ASSERT_EQ(spare.self().role, Role::spare);
  EXPECT_EQ(&spare.control(), &spare.data());
  EXPECT_TRUE(spare.ps_may_be_replaced());
  EXPECT_FALSE(spare.ps_may_return());
  Member ps = spare.member(Role::ps, 0);
  ps.host = "elsewhere";
  ps.pid = 77;
  ps.control_address = ps.data_address = spare.self().control_address;
  spare.become(ps);
  EXPECT_EQ(spare.self().name(), "ps 0 (rank 3 on elsewhere)");
  EXPECT_EQ(spare.log_tag(), "ps 0@elsewhere");
  // Other ranks learn the location when they communicate with the ps.
  Runtime& worker = *runtimes[1];
  worker.reconnect_ps_on_data(ps);
  EXPECT_EQ(worker.member(Role::ps, 0).host, "elsewhere");
  EXPECT_EQ(worker.member(3).pid, 77);
  EXPECT_EQ(worker.name_of(3), "ps 0 (rank 3 on elsewhere)");
  const Table now = worker.membership().table_now();
  EXPECT_EQ(now.members[3].host, "elsewhere");
  EXPECT_EQ(now.members[3].data_address, ps.data_address);
  EXPECT_NE(worker.members()[3].host, "elsewhere");
}

TEST(Runtime, RejectsASpareInOneProcess) {
  try {
    (void)Runtime::embedded_cluster(with({{"spares", "2"}}));
    ADD_FAILURE() << "the runtime was created";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_NE(std::string(error.what()).find("--spares 2"), std::string::npos) << error.what();
  }
}

TEST(Runtime, RestartedWorkerIsKnownByItsNewRank) {
  transport::LoopHub hub;
  auto old = Runtime::as_threads(with({{"ps", "1"}}), 4, hub);
  Table table = old[0]->table();
  table.restarts = 2;
  table.rank = 0;
  Runtime runtime(Settings(), table, hub.open(), hub.open());
  EXPECT_FALSE(runtime.joins_after_start());
  EXPECT_EQ(runtime.membership().worker_ranks(), (std::vector<int>{1, 2}));
  const int rank = table.rank_of_restart(1, 2);
  EXPECT_EQ(runtime.name_of(rank), "rank 7");
  EXPECT_THROW((void)runtime.member(rank), std::out_of_range);

  Member member = table.members[2];
  member.rank = rank;
  runtime.membership().add(member, MemberState::alive);
  EXPECT_EQ(runtime.member(rank).index, 1);
  EXPECT_EQ(runtime.name_of(rank), "worker 1 (rank 7 on " + host_name() + ")");
  EXPECT_EQ(runtime.membership().worker_ranks(), (std::vector<int>{1, 7}));
  EXPECT_EQ(runtime.members().size(), 4U);
  EXPECT_EQ(runtime.control_peer(member).rank(), 7);

  table.rank = rank;
  const Runtime itself(Settings(), table, hub.open(), hub.open(), member);
  EXPECT_TRUE(itself.joins_after_start());
  EXPECT_EQ(itself.self().rank, 7);
  EXPECT_EQ(itself.log_tag(), "worker 1@" + host_name());
}

TEST(Runtime, ConnectsAPeerOncePerFabric) {
  transport::LoopHub hub;
  const auto runtimes = Runtime::as_threads(Settings(), 3, hub);
  Runtime& worker = *runtimes[1];
  const Member& ps = worker.member(Role::ps, 0);
  transport::Peer& control = worker.control_peer(ps);
  transport::Peer& data = worker.data_peer(ps);
  EXPECT_EQ(&control, &worker.control_peer(ps));
  EXPECT_EQ(&data, &worker.data_peer(ps));
  EXPECT_NE(&control, &data);
  EXPECT_EQ(data.name(), ps.name());
}

TEST(Runtime, DropsMessagesFromOutsideOfTheJob) {
  auto own_fabric = std::make_unique<transport::UcxFabric>();
  transport::UcxFabric& own = *own_fabric;
  Table table;
  table.members = {{0, Role::ps, 0, host_name(), 0, own.address(), own.address()}};
  table.secret = transport::JobSecret::random();
  Runtime runtime(Settings(), table, std::move(own_fabric), nullptr);
  std::vector<int> received;
  runtime.control().on_message(5,
                               [&](const transport::Message& message) { received.push_back(message.from); });

  transport::UcxFabric outsider, insider;
  outsider.set_rank(1);
  insider.set_rank(2);
  insider.set_secret(table.secret);
  const auto send_until = [&](transport::UcxFabric& from, const auto& done) {
    from.connect(0, "the rank", own.address()).send(5, {});
    const auto both = [&] {
      from.progress();
      return done();
    };
    return transport::progress_until(own, transport::deadline_in(std::chrono::seconds(20)), both);
  };
  EXPECT_TRUE(send_until(outsider, [&] { return own.rejected() > 0; }));
  EXPECT_TRUE(send_until(insider, [&] { return !received.empty(); }));
  EXPECT_EQ(received, std::vector<int>{2});
  EXPECT_EQ(own.rejected(), 1U);
}

TEST(Runtime, EveryRankReachesEveryOtherOverBothFabrics) {
  transport::LoopHub hub;
  const auto runtimes = Runtime::as_threads(with({{"ps", "2"}}), 4, hub);
  std::multiset<std::pair<int, int>> received;  // (to, from)
  for (const auto& runtime : runtimes) {
    for (transport::Fabric* fabric : {&runtime->control(), &runtime->data()}) {
      fabric->on_message(99, [&received, to = runtime->self().rank](const transport::Message& m) {
        received.insert({to, m.from});
      });
    }
  }
  for (const auto& runtime : runtimes) {
    for (const Member& member : runtime->members()) {
      runtime->control_peer(member).send(99, {});
      runtime->data_peer(member).send(99, {});
    }
  }
  for (const auto& runtime : runtimes) {
    runtime->control().progress();
    runtime->data().progress();
  }
  for (int to = 0; to < 4; ++to) {
    for (int from = 0; from < 4; ++from) {
      EXPECT_EQ(received.count(std::pair(to, from)), 2U) << from << " to " << to;
    }
  }
}

TEST(Runtime, RejectsRolesThatDoNotFit) {
  transport::LoopHub hub;
  EXPECT_THROW((void)Runtime::as_threads(Settings(), 2, hub), Error);
  EXPECT_THROW((void)Runtime::as_threads(with({{"ps", "3"}}), 4, hub), Error);
}

TEST(Runtime, EmbeddedClusterHasEveryRole) {
  const auto coordinator = Runtime::embedded_cluster(Settings());
  EXPECT_EQ(coordinator->self().role, Role::coordinator);
  EXPECT_TRUE(coordinator->in_process());
  EXPECT_EQ(coordinator->count(Role::ps), 1);
  EXPECT_EQ(coordinator->count(Role::worker), 1);
  ASSERT_EQ(coordinator->embedded().size(), 2U);
  for (const auto& rank : coordinator->embedded()) {
    EXPECT_TRUE(rank->in_process());
    EXPECT_NE(rank->self().role, Role::coordinator);
  }
  const Cluster cluster(coordinator);
  EXPECT_TRUE(cluster.embedded());
  EXPECT_EQ(cluster.role(), Role::coordinator);
  EXPECT_EQ(cluster.index(), 0);
  EXPECT_EQ(cluster.rank(), 0);
  EXPECT_EQ(cluster.size(), 3);
  EXPECT_EQ(cluster.name(), "coordinator 0 (rank 0 on " + host_name() + ")");
}

TEST(Runtime, EmbeddedClusterHasTheRequestedRanks) {
  const auto by_flags = Runtime::embedded_cluster(with({{"ps", "3"}, {"workers", "4"}}));
  EXPECT_EQ(by_flags->count(Role::ps), 3);
  EXPECT_EQ(by_flags->count(Role::worker), 4);
  const auto by_roles = Runtime::embedded_cluster(with({{"roles", "coordinator:1,ps:2,worker:3"}}));
  EXPECT_EQ(by_roles->count(Role::ps), 2);
  EXPECT_EQ(by_roles->count(Role::worker), 3);
}

TEST(Runtime, EmbeddedClusterIgnoresSparesOfTheProgram) {
  Settings settings;
  settings.set_from_program("spares", "1");
  settings.set_from_program("replicas-of-ps", "2");
  const auto coordinator = Runtime::embedded_cluster(settings);
  EXPECT_EQ(coordinator->count(Role::spare), 0);
  EXPECT_EQ(coordinator->count(Role::ps), 1);
}

TEST(Runtime, WaitTimeoutComesFromTheSetting) {
  EXPECT_EQ(Runtime::embedded_cluster(with({{"wait-timeout", "3s"}}))->wait_timeout(),
            std::chrono::seconds(3));
}

}  // namespace
}  // namespace capstan::cluster
