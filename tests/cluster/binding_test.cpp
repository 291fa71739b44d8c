// binding_test.cpp -- ranks on simulated machines with two sockets, two adapters and four GPUs.
// Tests: src/base/available_resources.cpp
#include "cluster/roles/binding.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace capstan::cluster {
namespace {

using testing::ElementsAre;
using topology::AvailableResources;

/// Two NUMA nodes, each with eight cores, an adapter and two GPUs.
AvailableResources two_sockets() {
  return {.cpus = "0-15",
          .cpu_count = 16,
          .core_count = 16,
          .nodes = {{0, "0-7"}, {1, "8-15"}},
          .adapters = {{"mlx5_0", 0}, {"mlx5_1", 1}},
          .gpus = {{"g0", 0}, {"g1", 0}, {"g2", 1}, {"g3", 1}}};
}

AvailableResources one_core(int core) {
  return {
      .cpus = std::to_string(core), .cpu_count = 1, .core_count = 1, .nodes = {{0, std::to_string(core)}}};
}

/// One letter for each rank; all ranks may use the same resources.
std::vector<Member> members(const std::string& letters, const AvailableResources& resources) {
  std::vector<Member> out;
  std::array<int, 5> next{};
  for (const char letter : letters) {
    const auto role = std::string("CPWES").find(letter);
    out.push_back(
        {static_cast<int>(out.size()), static_cast<Role>(role), next.at(role)++, "n1", 1, {}, {}, resources});
  }
  return out;
}

TEST(Binding, DistributesPsOverAdaptersAndTheirNodes) {
  const auto bindings = plan_binding(members("CWPPP", two_sockets()));
  EXPECT_EQ(bindings[2], (Binding{"0-7", 0, "mlx5_0", "", true}));
  EXPECT_EQ(bindings[3], (Binding{"8-15", 1, "mlx5_1", "", true}));
  EXPECT_EQ(bindings[4], (Binding{"0-7", 0, "mlx5_0", "", true}));
  EXPECT_EQ(bindings[0], (Binding{"0-15", -1, "", "", false})) << "the coordinator is not bound";
}

TEST(Binding, DistributesWorkersOverGpus) {
  const auto bindings = plan_binding(members("CWWWWWP", two_sockets()));
  EXPECT_EQ(bindings[1], (Binding{"0-7", 0, "mlx5_0", "g0", true}));
  EXPECT_EQ(bindings[2], (Binding{"0-7", 0, "mlx5_1", "g1", true}));
  EXPECT_EQ(bindings[3], (Binding{"8-15", 1, "mlx5_0", "g2", true}));
  EXPECT_EQ(bindings[5].gpu, "g0") << "a fifth worker shares a GPU";
}

TEST(Binding, WithoutAdaptersDistributesPsOverNodes) {
  AvailableResources resources = two_sockets();
  resources.adapters.clear();
  resources.gpus.clear();
  const auto bindings = plan_binding(members("CWPP", resources));
  EXPECT_EQ(bindings[1], (Binding{"0-15", -1, "", "", false}));
  EXPECT_EQ(bindings[2], (Binding{"0-7", 0, "", "", true}));
  EXPECT_EQ(bindings[3], (Binding{"8-15", 1, "", "", true}));
}

TEST(Binding, KeepsRanksWithinTheCpusOfTheLauncher) {
  AvailableResources resources = two_sockets();  // bound to the second socket
  resources.cpus = "8-15";
  resources.nodes = {{1, "8-15"}};
  const auto bindings = plan_binding(members("CWPP", resources));
  EXPECT_EQ(bindings[1], (Binding{"8-15", 1, "mlx5_1", "g2", false}));
  EXPECT_EQ(bindings[2], (Binding{"8-15", 1, "mlx5_1", "", false}));
  EXPECT_EQ(bindings[3], (Binding{"8-15", 1, "mlx5_1", "", false})) << "the adapter of its node";
}

TEST(Binding, TreatsHostsIndependentlyAndSkipsUnknownResources) {
  auto all = members("CPP", two_sockets());
  all[2].host = "n2";
  EXPECT_EQ(plan_binding(all)[2].node, 0);
  EXPECT_EQ(plan_binding(members("CP", AvailableResources{}))[1], Binding{});
  AvailableResources nowhere = two_sockets();
  for (auto& adapter : nowhere.adapters) adapter.node = -1;  // resources unknown
  EXPECT_EQ(plan_binding(members("CPP", nowhere))[2], (Binding{"8-15", 1, "mlx5_1", "", true}));
}

TEST(Binding, SummaryCountsRolesAndHosts) {
  EXPECT_EQ(job_summary(members("CWP", two_sockets())), "1 coordinator, 1 ps, 1 worker on 1 host");
  auto all = members("CWWPPES", two_sockets());
  all[2].host = "n2";
  EXPECT_EQ(job_summary(all), "1 coordinator, 2 ps, 2 workers, 1 evaluator, 1 spare on 2 hosts");
}

TEST(Binding, TableHasOneLineForEachRank) {
  AvailableResources resources = two_sockets();
  resources.network = {"rc_mlx5", "tcp"};
  const auto all = members("CWP", resources);
  EXPECT_THAT(
      binding_table(all, plan_binding(all), 10),
      ElementsAre(
          "coordinator 0 (rank 0 on n1) is process 1: cpus 0-15, UCX by rc_mlx5 tcp",
          "worker 0 (rank 1 on n1) is process 1: cpus 0-7, NUMA node 0, mlx5_0, g0, bound, UCX by rc_mlx5 "
          "tcp",
          "ps 0 (rank 2 on n1) is process 1: cpus 0-7, NUMA node 0, mlx5_0, bound, UCX by rc_mlx5 tcp"));
  EXPECT_THAT(
      binding_table(all, plan_binding(all), 1),
      ElementsAre("coordinator 0 (rank 0 on n1) is process 1: cpus 0-15, UCX by rc_mlx5 tcp", "and 2 more"));
  const auto unknown = members("C", AvailableResources{});
  EXPECT_THAT(binding_table(unknown, plan_binding(unknown), 9),
              ElementsAre("coordinator 0 (rank 0 on n1) is process 1: hwloc does not report its cpus"));
}

TEST(Binding, WarnsOfSlowBindings) {
  const auto warnings = [](const std::vector<Member>& all) {
    return binding_warnings(all, plan_binding(all));
  };
  EXPECT_THAT(warnings(members("CWPP", two_sockets())), ElementsAre());
  auto bound = members("CWP", one_core(3));
  bound[2].resources = one_core(4);
  EXPECT_THAT(
      warnings(bound),
      ElementsAre(
          "worker 0 (rank 1 on n1) is bound to one core (cpus 3), which the thread that computes and the "
          "one that talks to the coordinator share: mpirun --bind-to none, or --map-by slot:PE=2, or srun "
          "--cpus-per-task=2",
          "ps 0 (rank 2 on n1) is bound to one core (cpus 4), which the thread that applies pushes and the "
          "one that writes checkpoints share: mpirun --bind-to none, or --map-by slot:PE=2, or srun "
          "--cpus-per-task=2"));
  bound[2].resources = one_core(3);
  EXPECT_EQ(
      warnings(bound).back(),
      "worker 0 (rank 1 on n1) and ps 0 (rank 2 on n1) are bound to the same core (cpus 3): mpirun --bind-to "
      "none, or fewer ranks per host");
}

TEST(Binding, WarnsIfThereAreMoreRanksThanCpus) {
  const AvailableResources two_cores{.cpus = "0-1", .cpu_count = 2, .core_count = 2, .nodes = {{0, "0-1"}}};
  const auto warnings = [](const std::vector<Member>& all) {
    return binding_warnings(all, plan_binding(all));
  };
  const auto warning = [](const std::string& ranks) {
    return ElementsAre("n1 has " + ranks + ", which share 2 cpus: start fewer ranks on this host");
  };
  // On one host, workers and ps are counted separately, and the coordinator is not counted.
  for (const char* const fits : {"CWP", "CWWP", "CWWPP", "CPP"}) {
    EXPECT_THAT(warnings(members(fits, two_cores)), ElementsAre()) << fits;
  }
  EXPECT_THAT(warnings(members("CWWWP", two_cores)), warning("1 ps and 3 workers"));
  EXPECT_THAT(warnings(members("CWPPP", two_cores)), warning("3 ps and 1 worker"));

  auto coordinator_elsewhere = members("CWWP", two_cores);
  coordinator_elsewhere.front().host = "n0";
  EXPECT_THAT(warnings(coordinator_elsewhere), ElementsAre());

  // If a worker is on another host, which the ps serve, too, all are counted together.
  const auto with_another_host = [&](const std::string& letters) {
    auto all = members(letters + "W", two_cores);
    all.back().host = "n2";
    return all;
  };
  EXPECT_THAT(warnings(with_another_host("CWP")), ElementsAre());
  EXPECT_THAT(warnings(with_another_host("CPP")), ElementsAre());
  EXPECT_THAT(warnings(with_another_host("CWWP")), warning("1 ps and 2 workers"));
  EXPECT_THAT(warnings(with_another_host("CPPP")), warning("3 ps and 0 workers"));
}

TEST(AvailableResources, ContainsTheCoresOfThisProcess) {
  const AvailableResources resources = topology::available_resources();
  EXPECT_FALSE(resources.cpus.empty());
  EXPECT_GE(resources.cpu_count, resources.core_count);
  EXPECT_GE(resources.core_count, 1);
  ASSERT_FALSE(resources.nodes.empty());
  EXPECT_TRUE(topology::bind_this_process(resources.cpus));
  EXPECT_EQ(topology::available_resources().cpus, resources.cpus);
  EXPECT_FALSE(topology::bind_this_process("4000-4001"));
}

}  // namespace
}  // namespace capstan::cluster
