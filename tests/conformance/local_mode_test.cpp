// local_mode_test.cpp -- local mode, argument checks of tf.contrib's strategy constructor, and cluster specs.
//
// Comments such as "A1.12: same" compare Capstan with TensorFlow; docs/conformance.md lists them by number.
#include <gmock/gmock.h>

#include "cluster/roles/role_map.hpp"
#include "conformance/replicas_fixture.hpp"

namespace capstan {
namespace {

using testing::HasSubstr;

// A1.13: better: local mode also has ps, workers and replicas, as threads of one process.
TEST(LocalMode, OneProcessHasEveryRole) {
  Settings settings;
  for (const auto& [name, value] : {std::pair{"replicas", "2"}, {"heap-slab-bytes", "1MiB"}}) {
    settings.set_from_flag(name, value);
  }
  ParameterServerStrategy strategy(Cluster(cluster::Runtime::embedded_cluster(settings)));
  ClusterCoordinator coordinator(strategy);
  const auto scope = strategy.scope();
  const auto v = summing("v", {1}, 1);
  EXPECT_EQ(coordinator.schedule<&run_and_reduce>(3.0, v).fetch(), std::make_tuple(8.0, 4.0));
}

// A1.12, A1.13, B186-B188: same.
TEST(LocalMode, DevicesOfOneMachine) {
  const DevicePlan cpu = plan_devices();
  EXPECT_EQ(cpu.compute, std::vector<std::string>{"/device:CPU:0"});
  EXPECT_EQ(cpu.variable, std::vector<std::string>{"/device:CPU:0"});
  EXPECT_TRUE(cpu.chief);
  const DevicePlan one = plan_devices({}, {}, {}, 1);
  EXPECT_EQ(one.compute, std::vector<std::string>{"/device:GPU:0"});
  EXPECT_EQ(one.variable, std::vector<std::string>{"/device:GPU:0"});
  EXPECT_EQ(one.num_replicas_in_sync(), 1);
  const DevicePlan two = plan_devices({}, {}, {}, 2);
  EXPECT_EQ(two.compute, (std::vector<std::string>{"/device:GPU:0", "/device:GPU:1"}));
  EXPECT_EQ(two.variable, std::vector<std::string>{"/device:CPU:0"});
  EXPECT_EQ(two.num_replicas_in_sync(), 2);
}

const ClusterSpec kSpec{{{"chief", {"h0:1"}}, {"worker", {"h1:1", "h2:1"}}, {"ps", {"h3:1", "h4:1"}}}};
const ClusterSpec kWithoutChief{{{"worker", {"h1:1", "h2:1"}}, {"ps", {"h3:1"}}}};

// A1.12: same.
TEST(LocalMode, WorkersHaveTheSameNumberOfReplicas) {
  std::vector<cluster::Hello> hellos(4, {"node0", 1, 7, {.ps = 1}, {}, {}, 2});
  EXPECT_EQ(cluster::make_members(hellos).size(), 4U);
  hellos[3].replicas = 4;
  EXPECT_THAT(error_of(Code::invalid_argument, [&] { static_cast<void>(cluster::make_members(hellos)); }),
              HasSubstr("Mismatched number of replicas per worker"));
}

// A1.12, A1.13: same.
TEST(ContribConstructor, NeedsATaskAndPs) {
  const DevicePlan plan = plan_devices(kSpec, "worker", 1, 2);
  EXPECT_EQ(plan.compute,
            (std::vector<std::string>{"/job:worker/task:1/device:GPU:0", "/job:worker/task:1/device:GPU:1"}));
  EXPECT_EQ(plan.variable, (std::vector<std::string>{"/job:ps/task:0", "/job:ps/task:1"}));
  EXPECT_FALSE(plan.chief);
  EXPECT_EQ(plan_devices(kSpec, "chief", 0).compute,
            std::vector<std::string>{"/job:chief/task:0/device:CPU:0"});
  const std::string both = "When `cluster_spec` is given, you must also specify `task_type` and `task_id`";
  EXPECT_EQ(error_of(Code::invalid_argument, [] { plan_devices(kSpec); }), both);
  EXPECT_EQ(error_of(Code::invalid_argument, [] { plan_devices(kSpec, "worker"); }), both);
  EXPECT_EQ(error_of(Code::invalid_argument, [] { plan_devices(kSpec, {}, 0); }), both);
  EXPECT_EQ(error_of(Code::invalid_argument,
                     [] {
                       plan_devices({{{"worker", {"h:1"}}}}, "worker", 0);
                     }),
            "The cluster spec needs to have `ps` jobs.");
}

// A1.11: same.
TEST(ClusterSpec, ListsTasksAndAddresses) {
  EXPECT_EQ(id_in_cluster(kSpec, "chief", 0), 0);
  EXPECT_EQ(id_in_cluster(kSpec, "worker", 1), 2);
  EXPECT_EQ(id_in_cluster(kWithoutChief, "worker", 1), 1);
  EXPECT_EQ(id_in_cluster(kSpec, "evaluator", 0), 0);
  EXPECT_EQ(worker_count(kSpec, "worker"), 3);
  EXPECT_EQ(worker_count(kSpec, "chief"), 3);
  EXPECT_EQ(worker_count(kWithoutChief, "worker"), 2);
  EXPECT_EQ(worker_count(kSpec, "evaluator"), 1);
  EXPECT_TRUE(is_chief(kSpec, "chief", 0));
  EXPECT_FALSE(is_chief(kSpec, "worker", 0));
  EXPECT_TRUE(is_chief(kWithoutChief, "worker", 0));
  EXPECT_FALSE(is_chief(kWithoutChief, "worker", 1));
  EXPECT_FALSE(is_chief(kSpec, "ps", 0));
  EXPECT_TRUE(is_chief(kSpec, "evaluator", 0));
}

// A1.11: same.
TEST(ClusterSpec, RejectsMissingTasks) {
  const auto refused = [](const ClusterSpec& spec, const char* type, int id) {
    return error_of(Code::invalid_argument, [&] { static_cast<void>(id_in_cluster(spec, type, id)); });
  };
  EXPECT_EQ(refused(kSpec, "worker", 2), "The `task_id` 2 exceeds the maximum id of worker, 1");
  EXPECT_THAT(refused(kSpec, "worker", -1), HasSubstr("negative"));
  EXPECT_EQ(refused(kSpec, "ps", 0), "There is no id for task_type 'ps'");
  EXPECT_EQ(refused(kWithoutChief, "chief", 0), "`task_type` 'chief' not found in cluster_spec");
  EXPECT_THAT(refused(kSpec, "gpu", 0), HasSubstr("Unrecognized task_type: gpu"));
  EXPECT_THAT(refused({{{"boss", {"h:1"}}}}, "worker", 0),
              HasSubstr("Disallowed task type found in cluster spec: \"boss\""));
  EXPECT_THAT(refused({{{"chief", {"a:1", "b:1"}}}}, "chief", 0), HasSubstr("at most one 'chief' job"));
  EXPECT_THAT(error_of(Code::invalid_argument, [] { worker_count(kSpec, "ps"); }), HasSubstr("'ps'"));
}

}  // namespace
}  // namespace capstan
