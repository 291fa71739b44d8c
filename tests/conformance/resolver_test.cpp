// resolver_test.cpp -- valid and invalid descriptions of a cluster; no test changes the environment.
// Tests: src/cluster/resolvers/cluster_spec.cpp
#include <gmock/gmock.h>

#include "capstan/resolvers.hpp"
#include "support/expect_error.hpp"

namespace capstan {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

using Counts = std::map<std::string, int>;

TFConfigOptions tf_config(const std::string& text, TFConfigOptions options = {}) {
  options.process = Environment::of({{"TF_CONFIG", text}});
  return options;
}

std::string with_task(const std::string& type, const std::string& index, const std::string& more = "") {
  return R"({"cluster": {"ps": ["ps0:2222", "ps1:2222"], "worker": ["worker0:2222", "worker1:2222", )"
         R"("worker2:2222"]}, "task": {"type": )" +
         type + R"(, "index": )" + index + "}" + more + "}";
}

const ClusterSpec kTwoJobs{
    {{"ps", {"ps0:2222", "ps1:2222"}}, {"worker", {"worker0:2222", "worker1:2222", "worker2:2222"}}}};

std::string refusal(const ClusterSpec& spec, const SimpleOptions& options = {}) {
  return error_of(Code::invalid_argument, [&] { validate_cluster(SimpleClusterResolver(spec, options)); });
}

SimpleOptions task(const std::string& type, std::optional<int> id = {}) {
  SimpleOptions options;
  options.task_type = type;
  options.task_id = id;
  return options;
}

const std::vector<std::string> kOne{"h:1"};
const std::vector<std::string> kTwo{"h:1", "h:2"};

// A1.2, B105-B109: same.
TEST(Validation, NamesTheMistake) {
  EXPECT_THAT(refusal({}), HasSubstr("Cluster spec must be non-empty"));
  const ClusterSpec other{{{"some_arbitrary_name", kOne}, {"worker", kOne}, {"ps", kOne}}};
  EXPECT_THAT(refusal(other), HasSubstr("Disallowed task type found in cluster spec"));
  EXPECT_THAT(refusal(other), HasSubstr("some_arbitrary_name"));
  EXPECT_THAT(refusal(kTwoJobs, task("foobar")), HasSubstr("Unrecognized task_type: foobar"));
  EXPECT_THAT(refusal(kTwoJobs, task("chief", 0)),
              HasSubstr("`task_type` 'chief' not found in cluster_spec"));
  EXPECT_THAT(refusal({{{"chief", kTwo}, {"worker", kOne}, {"ps", kOne}}}, task("chief", 1)),
              HasSubstr("There must be at most one 'chief' job."));
  EXPECT_THAT(refusal({{{"evaluator", kTwo}, {"worker", kOne}, {"ps", kOne}}}),
              HasSubstr("There must be at most one 'evaluator' job."));
  EXPECT_THAT(refusal(kTwoJobs, task("worker", 3)),
              HasSubstr("The `task_id` 3 exceeds the maximum id of worker"));
  EXPECT_EQ(refusal({{{"chief", kOne}, {"worker", kOne}}}, task("worker", 0)),
            "There must be at least one ps.");
  EXPECT_EQ(refusal({{{"chief", kOne}, {"ps", kOne}}}, task("ps", 0)), "There must be at least one worker.");
  validate_cluster(SimpleClusterResolver(kTwoJobs));
  validate_cluster(SimpleClusterResolver(kTwoJobs, task("worker", 2)));
  validate_cluster(SimpleClusterResolver(kTwoJobs, task("evaluator", 7)));
}

// A1.2: better: a task_id that is missing or negative is rejected by name.
TEST(Validation, NamesAMissingTaskId) {
  EXPECT_EQ(refusal(kTwoJobs, task("ps")), "The `task_id` of ps is missing");
  EXPECT_EQ(refusal(kTwoJobs, task("ps", -1)), "The `task_id` -1 of ps is negative");
}

// Each spec has the expected mistake and all mistakes that TensorFlow checks later.
// A1.2: same.
TEST(Validation, NamesTheFirstMistakeInTensorFlowsOrder) {
  const ClusterSpec all{{{"boss", kOne}, {"chief", kTwo}, {"evaluator", kTwo}}};
  EXPECT_THAT(refusal(all, task("foobar", 9)), HasSubstr("Disallowed task type"));
  const ClusterSpec without_boss{{{"chief", kTwo}, {"evaluator", kTwo}}};
  EXPECT_THAT(refusal(without_boss, task("foobar", 9)), HasSubstr("Unrecognized"));
  EXPECT_THAT(refusal(without_boss, task("worker", 9)), HasSubstr("not found"));
  EXPECT_THAT(refusal(without_boss, task("chief", 9)), HasSubstr("'chief' job"));
  const ClusterSpec one_chief{{{"chief", kOne}, {"evaluator", kTwo}}};
  EXPECT_THAT(refusal(one_chief, task("chief", 9)), HasSubstr("'evaluator' job"));
  const ClusterSpec alone{{{"chief", kOne}, {"evaluator", kOne}}};
  EXPECT_THAT(refusal(alone, task("chief", 9)), HasSubstr("exceeds"));
  EXPECT_THAT(refusal(alone, task("chief", 0)), HasSubstr("one ps"));
}

// A1.7, B229: same.
TEST(TFConfig, IsTheClusterAndTheTask) {
  const TFConfigClusterResolver resolver(tf_config(with_task(R"("ps")", "0")));
  EXPECT_EQ(resolver.cluster_spec(), kTwoJobs);
  EXPECT_EQ(resolver.task_type(), "ps");
  EXPECT_EQ(resolver.task_id(), 0);
  EXPECT_EQ(resolver.rpc_layer(), std::nullopt);
  EXPECT_EQ(resolver.environment(), "");
}

// A1.8: same.
TEST(TFConfig, ClusterIsEmptyWithoutTFConfig) {
  TFConfigOptions options;
  options.process = Environment::of({});
  const TFConfigClusterResolver resolver(options);
  EXPECT_EQ(resolver.cluster_spec(), ClusterSpec{});
  EXPECT_EQ(resolver.task_type(), std::nullopt);
  EXPECT_EQ(resolver.task_id(), std::nullopt);
  EXPECT_EQ(resolver.master(), "");
}

// A1.8, B230-B231: same.
TEST(TFConfig, ReturnsTheMasterOfAnyTask) {
  const TFConfigClusterResolver resolver(tf_config(with_task(R"("ps")", "0")));
  EXPECT_EQ(resolver.master(), "ps0:2222");
  EXPECT_EQ(resolver.master("worker", 1), "worker1:2222");
  EXPECT_EQ(resolver.master("worker"), "worker0:2222");
  EXPECT_EQ(resolver.master({}, 1), "ps1:2222");
}

// A1.8, B232: same.
TEST(TFConfig, SessionMasterTakesPrecedence) {
  const TFConfigClusterResolver resolver(tf_config(
      with_task(R"("ps")", "0", R"(, "session_master": "sessionmaster:2222", "rpc_layer": "grpc")")));
  EXPECT_EQ(resolver.master(), "sessionmaster:2222");
  EXPECT_EQ(resolver.master("worker", 1), "sessionmaster:2222");
}

// A1.8, B233: same.
TEST(TFConfig, MasterStartsWithTheRpcLayer) {
  const TFConfigClusterResolver resolver(tf_config(with_task(R"("ps")", "0", R"(, "rpc_layer": "grpc")")));
  EXPECT_EQ(resolver.rpc_layer(), "grpc");
  EXPECT_EQ(resolver.master(), "grpc://ps0:2222");
  EXPECT_EQ(resolver.master("worker", 2, "test"), "test://worker2:2222");
}

// A1.8, B234, B237: same.
TEST(TFConfig, ArgumentsAndSettersOverrideTheEnvironment) {
  const std::string text = with_task(R"("worker")", "0", R"(, "rpc_layer": "grpc")");
  TFConfigOptions options;
  options.task_type = "ps";
  options.task_id = 1;
  TFConfigClusterResolver resolver(tf_config(text, options));
  EXPECT_EQ(resolver.master(), "grpc://ps1:2222");
  resolver.set_task_type("worker");
  resolver.set_task_id(1);
  resolver.set_rpc_layer("test");
  EXPECT_EQ(resolver.master(), "test://worker1:2222");
  EXPECT_EQ(resolver.task_type(), "worker");
  EXPECT_EQ(resolver.task_id(), 1);
  EXPECT_EQ(resolver.rpc_layer(), "test");

  TFConfigOptions id_alone;
  id_alone.task_id = 2;
  id_alone.rpc_layer = "";
  EXPECT_EQ(TFConfigClusterResolver(tf_config(text, id_alone)).master(), "worker2:2222");
}

// A1.8, B235-B236: same.
TEST(TFConfig, ConvertsTypes) {
  const TFConfigClusterResolver resolver(tf_config(
      R"({"cluster": {"123456": ["ps0:2222", "ps1:2222"]}, "task": {"type": 123456, "index": "1"}})"));
  EXPECT_EQ(resolver.task_type(), "123456");
  EXPECT_EQ(resolver.task_id(), 1);
  EXPECT_EQ(resolver.master(), "ps1:2222");
}

// A1.8, B238-B239: same.
TEST(TFConfig, SingleProcessHasNoMaster) {
  EXPECT_EQ(TFConfigClusterResolver(tf_config("{}")).master(), "");
  EXPECT_EQ(TFConfigClusterResolver(tf_config(R"({"cluster": {}})")).master(), "");
  EXPECT_EQ(
      TFConfigClusterResolver(tf_config(R"({"cluster": {"worker": ["worker0:2222"]}, "rpc_layer": "grpc"})"))
          .master(),
      "");
}

// A1.8, B240: same.
TEST(TFConfig, CountsTheAcceleratorsOfATask) {
  TFConfigOptions options;
  std::string asked;
  options.list_devices = [&asked](const std::string& master) {
    asked = master;
    return std::vector<std::string>{"/job:worker1/task:0/device:TPU:0", "/job:worker1/task:0/device:TPU:1",
                                    "/job:worker1/task:0/device:GPU:0", "/job:worker1/task:0/device:GPU:1",
                                    "/job:worker1/task:0/device:CPU:0", "/job:worker2/task:0/device:TPU:2",
                                    "/job:worker2/task:1/device:TPU:3", "/job:worker2/task:2/device:GPU:2",
                                    "/job:worker2/task:3/device:GPU:3", "/job:worker2/task:30/device:GPU:3"};
  };
  const TFConfigClusterResolver resolver(
      tf_config(R"({"cluster": {"worker1": ["w10:2222"], "worker2": ["w21:2222", "w22:2222", "w23:2222", )"
                R"("w24:2222"]}, "rpc_layer": "grpc", "task": {"type": "worker1", "index": "0"}})",
                options));
  EXPECT_EQ(resolver.num_accelerators(), (Counts{{"TPU", 2}, {"GPU", 2}}));
  EXPECT_EQ(asked, "grpc://w10:2222");
  EXPECT_EQ(resolver.num_accelerators("worker2", 3), (Counts{{"GPU", 1}}));
  EXPECT_EQ(asked, "grpc://w24:2222");
}

// A1.7: same.
TEST(TFConfig, EvaluatorMayBeInItsOwnClusterOrNone) {
  const TFConfigClusterResolver own(
      tf_config(R"({"cluster": {"evaluator": ["e:1"]}, "task": {"type": "evaluator", "index": 0}})"));
  EXPECT_EQ(own.cluster_spec().task_count("evaluator"), 1);
  EXPECT_EQ(own.master(), "");
  EXPECT_TRUE(is_chief(own.cluster_spec(), *own.task_type(), *own.task_id()));
  const TFConfigClusterResolver none(tf_config(R"({"task": {"type": "evaluator", "index": 0}})"));
  EXPECT_TRUE(none.cluster_spec().empty());
  EXPECT_EQ(none.task_type(), "evaluator");
}

// A1.9: same.
TEST(SimpleResolver, ReturnsItsArguments) {
  SimpleOptions options = task("worker", 2);
  options.master = "session:1";
  options.environment = "cloud";
  options.num_accelerators = {{"GPU", 3}};
  options.rpc_layer = "grpc";
  SimpleClusterResolver resolver(kTwoJobs, options);
  EXPECT_EQ(resolver.cluster_spec(), kTwoJobs);
  EXPECT_EQ(resolver.task_type(), "worker");
  EXPECT_EQ(resolver.task_id(), 2);
  EXPECT_EQ(resolver.environment(), "cloud");
  EXPECT_EQ(resolver.num_accelerators(), (Counts{{"GPU", 3}}));
  EXPECT_EQ(resolver.num_accelerators("ps", 0), (Counts{{"GPU", 3}}));
  EXPECT_EQ(resolver.master(), "grpc://session:1");
  EXPECT_EQ(resolver.master("ps", 1), "grpc://ps1:2222");
  EXPECT_EQ(resolver.master("ps", 1, "test"), "test://ps1:2222");
  resolver.set_rpc_layer("other");
  EXPECT_EQ(resolver.master("ps", 1), "other://ps1:2222");
  EXPECT_EQ(SimpleClusterResolver(kTwoJobs).master(), "");
  EXPECT_THAT(SimpleClusterResolver(kTwoJobs).num_accelerators(), IsEmpty());
}

std::shared_ptr<ClusterResolver> simple(ClusterSpec spec, SimpleOptions options = {}) {
  return std::make_shared<SimpleClusterResolver>(std::move(spec), std::move(options));
}

// A1.9: same.
TEST(UnionResolver, MergesJobsAndOtherwiseUsesTheFirst) {
  SimpleOptions first = task("ps", 0);
  first.master = "first:1";
  first.environment = "cloud";
  first.num_accelerators = {{"GPU", 1}};
  first.rpc_layer = "grpc";
  SimpleOptions second = task("worker", 1);
  second.master = "second:1";
  UnionClusterResolver both({simple({{{"ps", {"p0:1"}}, {"worker", {"w0:1"}}}}, first),
                             simple({{{"worker", {"w1:1", "w2:1"}}, {"chief", {"c:1"}}}}, second)});
  EXPECT_EQ(both.cluster_spec(),
            (ClusterSpec{{{"chief", {"c:1"}}, {"ps", {"p0:1"}}, {"worker", {"w0:1", "w1:1", "w2:1"}}}}));
  EXPECT_EQ(both.task_type(), "ps");
  EXPECT_EQ(both.task_id(), 0);
  EXPECT_EQ(both.rpc_layer(), "grpc");
  EXPECT_EQ(both.environment(), "cloud");
  EXPECT_EQ(both.num_accelerators(), (Counts{{"GPU", 1}}));
  EXPECT_EQ(both.master(), "grpc://first:1");
  EXPECT_EQ(both.master("worker", 2), "grpc://w2:1");
  both.set_task_type("worker");
  both.set_task_id(1);
  both.set_rpc_layer("test");
  EXPECT_EQ(both.task_type(), "worker");
  EXPECT_EQ(both.task_id(), 1);
  EXPECT_EQ(both.master("chief", 0), "test://c:1");
  EXPECT_EQ(error_of(Code::invalid_argument, [] { UnionClusterResolver({}); }),
            "At least one ClusterResolver is required.");
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [] {
                         UnionClusterResolver({simple({}), nullptr});
                       }),
              HasSubstr("resolver 1 is null"));
}

/// A user-defined resolver for another kind of machine.
class FileResolver final : public ClusterResolver {
 public:
  FileResolver() : ClusterResolver({"worker", 1, "grpc"}) {}
  ClusterSpec cluster_spec() const override { return kTwoJobs; }

 private:
  Counts count_accelerators(const TaskOptions& asked) const override { return count_devices({}, 2, asked); }
};

// A1.9: same.
TEST(UserDefinedResolver, DerivesFromClusterResolver) {
  FileResolver resolver;
  validate_cluster(resolver);
  EXPECT_EQ(resolver.master(), "grpc://worker1:2222");
  EXPECT_EQ(resolver.num_accelerators(), (Counts{{"GPU", 2}}));
  EXPECT_EQ(resolver.num_accelerators("worker"), (Counts{{"GPU", 2}}));
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { resolver.num_accelerators("ps", 0); }),
              HasSubstr("only ps 0 itself knows"));
  resolver.set_task_type("ps");
  EXPECT_EQ(resolver.master(), "grpc://ps1:2222");
}

SlurmOptions slurm(std::map<std::string, std::string> variables) {
  SlurmOptions options;
  options.process = Environment::of(std::move(variables));
  return options;
}

const std::map<std::string, std::string> kThreeNodes{{"SLURM_PROCID", "0"},
                                                     {"SLURM_STEP_NUM_TASKS", "3"},
                                                     {"SLURM_STEP_TASKS_PER_NODE", "1(x3)"},
                                                     {"SLURM_STEP_NODELIST", "t02n13,t02n41,t02n43"},
                                                     {"CUDA_VISIBLE_DEVICES", "0"}};
const std::vector<HostTasks> kThreeHosts{{"t02n13", 1}, {"t02n41", 1}, {"t02n43", 1}};
const ClusterSpec kPsAndWorkers{{{"ps", {"t02n13:8888"}}, {"worker", {"t02n41:8888", "t02n43:8888"}}}};

// A1.10, B223: same.
TEST(Slurm, WithoutArgumentsAllTasksAreWorkers) {
  const SlurmClusterResolver resolver(slurm(kThreeNodes));
  EXPECT_EQ(resolver.cluster_spec(),
            (ClusterSpec{{{"worker", {"t02n13:8888", "t02n41:8888", "t02n43:8888"}}}}));
  EXPECT_EQ(resolver.task_type(), "worker");
  EXPECT_EQ(resolver.task_id(), 0);
  EXPECT_EQ(resolver.num_accelerators(), (Counts{{"GPU", 1}}));
  EXPECT_EQ(resolver.visible_gpus(), "0");
}

// A1.10, B224: same.
TEST(Slurm, JobsAndHostsAsArguments) {
  SlurmOptions options = slurm({{"SLURM_PROCID", "0"}});
  options.jobs = {{"ps", 1}, {"worker", 2}};
  options.hosts = kThreeHosts;
  options.gpus_per_node = 1;
  options.gpus_per_task = 1;
  EXPECT_EQ(SlurmClusterResolver(options).cluster_spec(), kPsAndWorkers);
}

// A1.10, B225: same.
TEST(Slurm, MasterIsTheAddressOfATask) {
  SlurmOptions options = slurm({{"SLURM_PROCID", "0"}});
  options.jobs = {{"ps", 1}, {"worker", 2}};
  options.hosts = kThreeHosts;
  SlurmClusterResolver resolver(options);
  EXPECT_EQ(resolver.master(), "grpc://t02n13:8888");
  resolver.set_task_type("worker");
  resolver.set_task_id(1);
  EXPECT_EQ(resolver.master(), "grpc://t02n43:8888");
  resolver.set_rpc_layer("ab");
  EXPECT_EQ(resolver.master("ps", 0), "ab://t02n13:8888");
  EXPECT_EQ(resolver.master("ps", 0, "test"), "test://t02n13:8888");
}

// A1.10, B226: same.
TEST(Slurm, ReadsTasksPerNodeFromTheEnvironment) {
  SlurmOptions options = slurm(kThreeNodes);
  options.jobs = {{"ps", 1}, {"worker", 2}};
  options.gpus_per_node = 1;
  options.gpus_per_task = 1;
  EXPECT_EQ(SlurmClusterResolver(options).cluster_spec(), kPsAndWorkers);
}

SlurmOptions five_tasks(const std::string& rank) {
  SlurmOptions options = slurm({{"SLURM_PROCID", rank},
                                {"SLURM_STEP_NUM_TASKS", "5"},
                                {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                                {"SLURM_STEP_NODELIST", "t02n[13,41,43]"}});
  options.jobs = {{"worker", 4}, {"ps", 1}};
  return options;
}

// A1.10: same.
TEST(Slurm, AssignsPortsAndGpusByLocalTaskId) {
  SlurmOptions options = five_tasks("1");
  options.gpus_per_node = 2;
  const SlurmClusterResolver resolver(options);
  EXPECT_EQ(resolver.cluster_spec(),
            (ClusterSpec{{{"ps", {"t02n13:8888"}},
                          {"worker", {"t02n13:8889", "t02n41:8888", "t02n41:8889", "t02n43:8888"}}}}));
  EXPECT_EQ(resolver.task_type(), "worker");
  EXPECT_EQ(resolver.task_id(), 0);
  EXPECT_EQ(resolver.gpus_per_task(), 1);
  EXPECT_EQ(resolver.visible_gpus(), "1");

  SlurmOptions more = five_tasks("3");
  more.gpus_per_node = 4;
  more.gpus_per_task = 2;
  more.port_base = 1000;
  const SlurmClusterResolver fourth(more);
  EXPECT_EQ(fourth.num_accelerators(), (Counts{{"GPU", 2}}));
  EXPECT_EQ(fourth.visible_gpus(), "2,3");
  EXPECT_EQ(fourth.master(), "grpc://t02n41:1001");
}

// A1.10: same.
TEST(Slurm, NamesInconsistentArguments) {
  const auto refused = [](const SlurmOptions& options) {
    return error_of(Code::failed_precondition, [&] { SlurmClusterResolver resolver(options); });
  };
  for (const char* const missing : {"SLURM_PROCID", "SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE"}) {
    auto variables = kThreeNodes;
    variables.erase(missing);
    const std::string text = refused(slurm(variables));
    EXPECT_THAT(text, HasSubstr(missing));
    EXPECT_THAT(text, HasSubstr("not found in environment. Not running inside a Slurm step?"));
  }
  SlurmOptions options = five_tasks("0");
  options.gpus_per_node = 1;
  options.gpus_per_task = 1;
  EXPECT_THAT(refused(options), HasSubstr("Requested more GPUs per node than available"));
  options = five_tasks("0");
  options.jobs = {{"worker", 6}};
  EXPECT_THAT(refused(options), HasSubstr("Requested 6 tasks (worker 6) but 5 were assigned"));
}

SlurmOptions step(const std::string& hosts, const std::string& tasks,
                  const std::map<std::string, std::string>& more) {
  std::map<std::string, std::string> variables{{"SLURM_STEP_NODELIST", hosts},
                                               {"SLURM_STEP_TASKS_PER_NODE", tasks}};
  variables.insert(more.begin(), more.end());
  return slurm(std::move(variables));
}

std::vector<std::string> workers(const SlurmOptions& options) {
  return SlurmClusterResolver(options).cluster_spec().jobs["worker"];
}

using Addresses = std::vector<std::string>;

// A1.10: better: hosts keep Slurm's order, which is that of the ranks, also with n9 before n10.
TEST(Slurm, HostsKeepTheOrderOfRanks) {
  EXPECT_EQ(workers(step("n[9-10]", "1(x2)",
                         {{"SLURM_PROCID", "1"}, {"SLURM_NODEID", "1"}, {"SLURM_LOCALID", "0"}})),
            (Addresses{"n9:8888", "n10:8888"}));
}

// A1.10: better: with cyclic and plane distribution, ranks are where Slurm puts them, and a rank that finds
// itself elsewhere throws.
TEST(Slurm, RanksHaveTheirSlurmNodes) {
  const std::map<std::string, std::string> own{
      {"SLURM_PROCID", "1"}, {"SLURM_NODEID", "1"}, {"SLURM_LOCALID", "0"}};
  auto cyclic = own;
  cyclic["SLURM_DISTRIBUTION"] = "cyclic";
  EXPECT_EQ(workers(step("n[1-2]", "2(x2)", cyclic)),
            (Addresses{"n1:8888", "n2:8888", "n1:8889", "n2:8889"}));
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { workers(step("n[1-2]", "2(x2)", own)); }),
              HasSubstr("rank 1 should be task 1 of node 0 (n1)"));
}

// A1.10: better: heterogeneous jobs, whose ranks are ordered by component.
TEST(Slurm, HeterogeneousJobs) {
  EXPECT_EQ(workers(step("n[1-2,10]", "2,1(x2)",
                         {{"SLURM_PROCID", "0"},
                          {"SLURM_HET_SIZE", "2"},
                          {"SLURM_JOB_NODELIST_HET_GROUP_0", "n10"},
                          {"SLURM_JOB_NODELIST_HET_GROUP_1", "n[1-2]"}})),
            (Addresses{"n10:8888", "n1:8888", "n1:8889", "n2:8888"}));
}

// A1.10: better: set_visible_gpus changes the process; creating a resolver does not.
TEST(Slurm, SelectsGpusFromTheVisibleOnes) {
  SlurmOptions options = five_tasks("3");
  const auto process = options.process.variable;
  options.process.variable = [process](const std::string& name) {
    return name == "CUDA_VISIBLE_DEVICES" ? std::optional<std::string>("4,5,6,7") : process(name);
  };
  EXPECT_EQ(SlurmClusterResolver(options).visible_gpus(), "6,7");
}

}  // namespace
}  // namespace capstan
