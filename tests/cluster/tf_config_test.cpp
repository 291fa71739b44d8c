// tf_config_test.cpp -- valid and invalid contents of TF_CONFIG.
#include "cluster/resolvers/tf_config.hpp"

#include <gmock/gmock.h>

#include "capstan/resolvers.hpp"
#include "support/expect_error.hpp"
#include "support/names_all.hpp"

namespace capstan::cluster {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string refused(const std::string& text) {
  return error_of(Code::invalid_argument, [&] { parse_tf_config(text); });
}

TFConfigOptions options_with(std::map<std::string, std::string> variables, int gpus = 0) {
  TFConfigOptions options;
  options.process = Environment::of(std::move(variables), gpus);
  return options;
}

TEST(TFConfigText, ReadsAllParts) {
  const TFConfig config = parse_tf_config(
      R"({"cluster": {"chief": ["c:1"], "ps": ["p0:1", "p1:1"]}, "task": {"type": "ps", "index": 1},
          "rpc_layer": "grpc", "session_master": "m:1", "environment": "cloud"})");
  EXPECT_EQ(config.cluster, (ClusterSpec{{{"chief", {"c:1"}}, {"ps", {"p0:1", "p1:1"}}}}));
  EXPECT_EQ(config.task_type, "ps");
  EXPECT_EQ(config.task_id, 1);
  EXPECT_EQ(config.rpc_layer, "grpc");
  EXPECT_EQ(config.session_master, "m:1");
}

TEST(TFConfigText, NullEqualsAbsence) {
  const TFConfig config = parse_tf_config(
      R"({"cluster": null, "task": {"type": null, "index": null}, "rpc_layer": null, "session_master": null})");
  EXPECT_TRUE(config.cluster.empty());
  EXPECT_EQ(config.task_type, std::nullopt);
  EXPECT_EQ(config.task_id, std::nullopt);
  EXPECT_EQ(config.rpc_layer, std::nullopt);
  EXPECT_EQ(config.session_master, std::nullopt);
  EXPECT_EQ(parse_tf_config(R"({"task": null})").task_type, std::nullopt);
}

TEST(TFConfigText, RejectsInvalidJsonWithItsPosition) {
  for (const char* const text : {"{", "{cluster: {}}", R"({"cluster": {"ps": ["a:1",]}})", "[1, 2", "worker",
                                 R"({"task": {"index": 1e999}})", "\"\xff\"", "{} {}"}) {
    EXPECT_THAT(refused(text), NamesAll({"TF_CONFIG", "JSON", R"({"cluster": {"worker": ["host:port"])"}))
        << text;
  }
  EXPECT_THAT(refused("{\n  cluster: {}}"), NamesAll({"line 2", "column 3"}));
}

TEST(TFConfigText, RejectsWrongTypesWithTheirPath) {
  // The text, and the path, the value found and the type expected there.
  const std::pair<const char*, std::vector<std::string>> all[] = {
      {"[]", {"TF_CONFIG", "[]", "object"}},
      {"3", {"TF_CONFIG", "3", "object"}},
      {R"({"cluster": ["a:1"]})", {"TF_CONFIG", "cluster", R"(["a:1"])", "jobs"}},
      {R"({"cluster": {"ps": "a:1"}})", {"TF_CONFIG", "cluster.ps", R"("a:1")", "list"}},
      {R"({"cluster": {"ps": {"0": "a:1"}}})", {"TF_CONFIG", "cluster.ps", R"({"0":"a:1"})", "list"}},
      {R"({"cluster": {"ps": null}})", {"TF_CONFIG", "cluster.ps", "null", "list"}},
      {R"({"cluster": {"worker": ["a:1", 5]}})", {"TF_CONFIG", "cluster.worker[1]", "5", "address"}},
      {R"({"cluster": {"worker": ["a:1", ""]}})", {"TF_CONFIG", "cluster.worker[1]", "\"\"", "address"}},
      {R"({"task": "ps"})", {"TF_CONFIG", "task", R"("ps")", "object"}},
      {R"({"task": {"type": ["a"]}})", {"TF_CONFIG", "task.type", R"(["a"])", "job's name"}},
      {R"({"task": {"index": "one"}})", {"TF_CONFIG", "task.index", R"("one")", "number"}},
      {R"({"task": {"index": ""}})", {"TF_CONFIG", "task.index", "\"\"", "number"}},
      {R"({"task": {"index": "1x"}})", {"TF_CONFIG", "task.index", "\"1x\"", "number"}},
      {R"({"task": {"index": -1}})", {"TF_CONFIG", "task.index", "-1", "number"}},
      {R"({"task": {"index": 1.5}})", {"TF_CONFIG", "task.index", "1.5", "number"}},
      {R"({"task": {"index": true}})", {"TF_CONFIG", "task.index", "true", "number"}},
      {R"({"task": {"index": 99999999999}})", {"TF_CONFIG", "task.index", "99999999999", "number"}},
      {R"({"rpc_layer": 1})", {"TF_CONFIG", "rpc_layer", "1"}},
      {R"({"session_master": {}})", {"TF_CONFIG", "session_master", "{}"}}};
  for (const auto& [text, parameters] : all) EXPECT_THAT(refused(text), NamesAll(parameters)) << text;
  EXPECT_LT(refused(R"({"task": ")" + std::string(10'000, 'x') + R"("})").size(), 200U);
}

TEST(TFConfigText, RejectsDeepNesting) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_THAT(refused(deep), StartsWith("TF_CONFIG"));
  EXPECT_THAT(refused(deep), HasSubstr("200000"));
  EXPECT_THAT(refused("{\"cluster\": " + deep + "}"), HasSubstr("200001"));
}

TEST(TFConfigResolver, ConstructorRejectsInvalidText) {
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [] {
                         TFConfigClusterResolver resolver(options_with({{"TF_CONFIG", "{"}}));
                       }),
              NamesAll({"TF_CONFIG", "JSON"}));
}

TEST(TFConfigResolver, RejectsAMissingTaskAndListsExistingOnes) {
  const char* const text = R"({"cluster": {"worker": ["a:1", "b:1"], "ps": ["c:1"]}})";
  const TFConfigClusterResolver resolver(options_with({{"TF_CONFIG", text}}));
  const auto refused_master = [&](const std::optional<std::string>& type, std::optional<int> id) {
    return error_of(Code::invalid_argument, [&] { static_cast<void>(resolver.master(type, id)); });
  };
  EXPECT_THAT(refused_master({}, {}), NamesAll({"task_type"}));
  EXPECT_THAT(refused_master("worker", {}), NamesAll({"task_id"}));
  EXPECT_THAT(refused_master("chief", 0), NamesAll({"'chief'", "ps", "worker"}));
  EXPECT_THAT(refused_master("worker", 5), NamesAll({"'worker'", "5", "2"}));
  EXPECT_THAT(refused_master("worker", -1), NamesAll({"'worker'", "-1", "2"}));
}

TEST(TFConfigResolver, CountsLocalGpusWithoutAListOfDevices) {
  const char* const text =
      R"({"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1}})";
  using Counts = std::map<std::string, int>;
  const auto own = [&](std::map<std::string, std::string> variables, int gpus) {
    variables["TF_CONFIG"] = text;
    return TFConfigClusterResolver(options_with(std::move(variables), gpus)).num_accelerators();
  };
  EXPECT_EQ(own({}, 0), Counts{});
  EXPECT_EQ(own({}, 4), (Counts{{"GPU", 4}}));
  EXPECT_EQ(own({{"CUDA_VISIBLE_DEVICES", "2,3"}}, 4), (Counts{{"GPU", 2}}));
  EXPECT_EQ(own({{"CUDA_VISIBLE_DEVICES", ""}}, 4), Counts{});
  EXPECT_EQ(own({{"CUDA_VISIBLE_DEVICES", "0,-1,1"}}, 4), (Counts{{"GPU", 1}}));
  EXPECT_EQ(own({{"CUDA_VISIBLE_DEVICES", "GPU-8d3f,MIG-1a"}}, 4), (Counts{{"GPU", 2}}));
  EXPECT_EQ(own({{"CUDA_VISIBLE_DEVICES", "NoDevFiles"}}, 4), Counts{});

  const TFConfigClusterResolver resolver(options_with({{"TF_CONFIG", text}}, 2));
  EXPECT_EQ(resolver.num_accelerators("worker", 1), (Counts{{"GPU", 2}}));
  EXPECT_THAT(
      error_of(Code::failed_precondition, [&] { static_cast<void>(resolver.num_accelerators("worker", 0)); }),
      NamesAll({"worker 0", "num_accelerators"}));
}

TEST(DefaultResolver, UsesTFConfigIfSet) {
  EXPECT_EQ(default_cluster_resolver(Environment::of({})), nullptr);
  EXPECT_EQ(default_cluster_resolver(Environment::of({{"TF_CONFIG", " \n"}})), nullptr);
  const auto resolver =
      default_cluster_resolver(Environment::of({{"TF_CONFIG", R"({"cluster": {"ps": ["a:1", "b:1"]}})"}}));
  ASSERT_NE(resolver, nullptr);
  EXPECT_EQ(resolver->cluster_spec().task_count("ps"), 2);
}

TEST(DefaultResolver, DescribesTheProcessByDefault) {
  const Environment process = Environment::of_process();
  EXPECT_FALSE(process.variable("PATH").value_or("").empty());
  EXPECT_EQ(process.variable("CAPSTAN_NO_SUCH_VARIABLE"), std::nullopt);
  EXPECT_GE(process.gpus(), 0);
}

}  // namespace
}  // namespace capstan::cluster
