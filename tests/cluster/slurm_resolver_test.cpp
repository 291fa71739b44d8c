// slurm_resolver_test.cpp -- valid and invalid variables of Slurm 22.05 on nodes n1, n2 and n10.
// Tests: src/cluster/resolvers/slurm_layout.cpp
#include <gmock/gmock.h>

#include <cstdlib>

#include "capstan/resolvers.hpp"
#include "support/expect_error.hpp"
#include "support/names_all.hpp"

namespace capstan {
namespace {

using testing::HasSubstr;

using Strings = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

SlurmOptions in(Variables variables, int gpus = 0) {
  SlurmOptions options;
  options.process = Environment::of(std::move(variables), gpus);
  return options;
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

/// Returns the variables of one rank.
Variables rank(int procid, int nodeid, int localid) {
  return {{"SLURM_PROCID", std::to_string(procid)},
          {"SLURM_NODEID", std::to_string(nodeid)},
          {"SLURM_LOCALID", std::to_string(localid)}};
}

Strings workers(const SlurmOptions& options) {
  return SlurmClusterResolver(options).cluster_spec().jobs["worker"];
}

template <class Options>
std::string refused(Code code, const Options& options) {
  return error_of(code, [&] { SlurmClusterResolver resolver(options); });
}

// srun -N3 -n5
const Variables kStep{{"SLURM_STEP_NODELIST", "n[1-2,10]"},
                      {"SLURM_STEP_NUM_TASKS", "5"},
                      {"SLURM_STEP_TASKS_PER_NODE", "3,1(x2)"},
                      {"SLURM_JOB_NODELIST", "n[1-2,10]"},
                      {"SLURM_NTASKS", "5"},
                      {"SLURM_TASKS_PER_NODE", "3,1(x2)"}};
const int kPlacements[5][3] = {{0, 0, 0}, {1, 0, 1}, {2, 0, 2}, {3, 1, 0}, {4, 2, 0}};

TEST(SlurmResolver, FindsTheTaskOfEveryRankOfAStep) {
  for (const auto& placement : kPlacements) {
    SlurmOptions options = in(with(kStep, rank(placement[0], placement[1], placement[2])));
    options.jobs = {{"worker", 3}, {"chief", 1}, {"ps", 1}};
    const SlurmClusterResolver resolver(options);
    EXPECT_EQ(resolver.cluster_spec(), (ClusterSpec{{{"chief", {"n1:8888"}},
                                                     {"ps", {"n1:8889"}},
                                                     {"worker", {"n1:8890", "n2:8888", "n10:8888"}}}}));
    validate_cluster(resolver);
    const int number = placement[0];
    EXPECT_EQ(resolver.task_type(), number == 0 ? "chief" : number == 1 ? "ps" : "worker");
    EXPECT_EQ(resolver.task_id(), number < 2 ? 0 : number - 2);
  }
}

// srun -n2 -N1 in a job of two nodes and three tasks: the step's variables take precedence.
TEST(SlurmResolver, StepTakesPrecedenceOverTheJob) {
  const SlurmOptions options = in(with(rank(1, 0, 1), {{"SLURM_STEP_NODELIST", "n1"},
                                                       {"SLURM_STEP_NUM_TASKS", "2"},
                                                       {"SLURM_STEP_TASKS_PER_NODE", "2"},
                                                       {"SLURM_JOB_NODELIST", "n[1-2]"},
                                                       {"SLURM_NTASKS", "3"},
                                                       {"SLURM_TASKS_PER_NODE", "2,1"}}));
  EXPECT_EQ(workers(options), (Strings{"n1:8888", "n1:8889"}));
}

// Variables of a batch script, which is not in a step.
TEST(SlurmResolver, BatchScriptDescribesTheCompleteJob) {
  const Variables batch =
      with(rank(0, 0, 0), {{"SLURM_JOB_NODELIST", "n[1-2]"}, {"SLURM_TASKS_PER_NODE", "2,1"}});
  EXPECT_EQ(workers(in(with(batch, {{"SLURM_NTASKS", "3"}}))), (Strings{"n1:8888", "n1:8889", "n2:8888"}));
  EXPECT_EQ(workers(in(batch)), (Strings{"n1:8888", "n1:8889", "n2:8888"}));
}

// srun -N2 -n4 --distribution=cyclic on nodes with 3 and 1 free cores, which sets SLURM_NODEID and
// SLURM_LOCALID accordingly.
TEST(SlurmResolver, SupportsCyclicDistribution) {
  const Variables step{{"SLURM_STEP_NODELIST", "n[1-2]"}, {"SLURM_STEP_TASKS_PER_NODE", "3,1"}};
  const int placements[4][3] = {{0, 0, 0}, {1, 1, 0}, {2, 0, 1}, {3, 0, 2}};
  for (const auto& placement : placements) {
    const Variables own = with(step, rank(placement[0], placement[1], placement[2]));
    for (const char* const cyclic : {"cyclic", "cyclic:block,nopack"}) {
      EXPECT_EQ(workers(in(with(own, {{"SLURM_DISTRIBUTION", cyclic}}))),
                (Strings{"n1:8888", "n2:8888", "n1:8889", "n1:8890"}));
    }
  }
  const auto plane = [&](const char* size) {
    return in({{"SLURM_STEP_NODELIST", "a,b"},
               {"SLURM_STEP_TASKS_PER_NODE", "3,2"},
               {"SLURM_PROCID", "0"},
               {"SLURM_DISTRIBUTION", "plane"},
               {"SLURM_DIST_PLANESIZE", size}});
  };
  EXPECT_EQ(workers(plane("2")), (Strings{"a:8888", "a:8889", "b:8888", "b:8889", "a:8890"}));
  EXPECT_EQ(workers(plane("1")), (Strings{"a:8888", "b:8888", "a:8889", "b:8889", "a:8890"}));
  EXPECT_THAT(refused(Code::failed_precondition,
                      in(with(kStep, with(rank(0, 0, 0), {{"SLURM_DISTRIBUTION", "arbitrary"}})))),
              HasSubstr("--distribution=block"));
}

TEST(SlurmResolver, RejectsInconsistentNodeIds) {
  const std::string text = refused(Code::failed_precondition, in(with(kStep, rank(1, 1, 0))));
  EXPECT_THAT(text, NamesAll({"rank 1", "task 1", "node 0", "n1", "SLURM_STEP_TASKS_PER_NODE=3,1(x2)"}));
  EXPECT_THAT(text, NamesAll({"SLURM_LOCALID=0", "SLURM_NODEID=1", "--distribution=block"}));
}

// A step of both components: n10 with one task, then n1 and n2 with three. Slurm sorts the list of the step.
const Variables kHeterogeneous{{"SLURM_HET_SIZE", "2"},
                               {"SLURM_STEP_NODELIST", "n[1-2,10]"},
                               {"SLURM_STEP_NUM_TASKS", "4"},
                               {"SLURM_STEP_TASKS_PER_NODE", "2,1(x2)"},
                               {"SLURM_JOB_NODELIST_HET_GROUP_0", "n10"},
                               {"SLURM_JOB_NODELIST_HET_GROUP_1", "n[1-2]"},
                               {"SLURM_TASKS_PER_NODE_HET_GROUP_0", "1"},
                               {"SLURM_TASKS_PER_NODE_HET_GROUP_1", "2,1"}};

TEST(SlurmResolver, OrdersRanksOfAHeterogeneousStepByComponent) {
  const int placements[4][3] = {{0, 0, 0}, {1, 1, 0}, {2, 1, 1}, {3, 2, 0}};
  for (const auto& placement : placements) {
    SlurmOptions options = in(with(kHeterogeneous, rank(placement[0], placement[1], placement[2])));
    options.jobs = {{"chief", 1}, {"ps", 1}, {"worker", 2}};
    EXPECT_EQ(
        SlurmClusterResolver(options).cluster_spec(),
        (ClusterSpec{{{"chief", {"n10:8888"}}, {"ps", {"n1:8888"}}, {"worker", {"n1:8889", "n2:8888"}}}}));
  }
}

TEST(SlurmResolver, DescribesAStepOfOneComponent) {
  const Variables one = with(kHeterogeneous, {{"SLURM_STEP_NODELIST", "n[1-2]"},
                                              {"SLURM_STEP_NUM_TASKS", "3"},
                                              {"SLURM_STEP_TASKS_PER_NODE", "2,1"}});
  EXPECT_EQ(workers(in(with(one, rank(2, 1, 0)))), (Strings{"n1:8888", "n1:8889", "n2:8888"}));
}

TEST(SlurmResolver, BatchScriptDescribesAllComponents) {
  Variables batch = with(kHeterogeneous, rank(0, 0, 0));
  for (const char* const name :
       {"SLURM_STEP_NODELIST", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE"}) {
    batch.erase(name);
  }
  batch["SLURM_JOB_NODELIST"] = "n10";  // describes component 0 only, as do the next two
  batch["SLURM_TASKS_PER_NODE"] = "1";
  SlurmOptions options = in(batch);
  options.jobs = {{"worker", 4}};
  EXPECT_EQ(workers(options), (Strings{"n10:8888", "n1:8888", "n1:8889", "n2:8888"}));
  batch["SLURM_NTASKS"] = "1";
  EXPECT_EQ(workers(in(batch)).size(), 4U);
  batch.erase("SLURM_TASKS_PER_NODE_HET_GROUP_1");
  EXPECT_THAT(refused(Code::failed_precondition, in(batch)), NamesAll({"SLURM_TASKS_PER_NODE_HET_GROUP_1"}));
}

TEST(SlurmResolver, RejectsComponentsThatDoNotFitTheStep) {
  const Variables own = with(kHeterogeneous, rank(0, 0, 0));
  EXPECT_THAT(refused(Code::failed_precondition, in(with(own, {{"SLURM_JOB_NODELIST_HET_GROUP_1", "n1"}}))),
              NamesAll({"n2", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST_HET_GROUP_0"}));
  EXPECT_THAT(
      refused(Code::failed_precondition, in(with(own, {{"SLURM_JOB_NODELIST_HET_GROUP_1", "n[1-2,10]"}}))),
      NamesAll({"n10", "SLURM_JOB_NODELIST_HET_GROUP_1"}));
  Variables without = own;
  without.erase("SLURM_JOB_NODELIST_HET_GROUP_1");
  EXPECT_THAT(refused(Code::failed_precondition, in(without)), NamesAll({"SLURM_JOB_NODELIST_HET_GROUP_1"}));
}

// mpirun in a job of two nodes: its daemons are tasks of a step, and ranks inherit their variables.
TEST(SlurmResolver, DetectsMpirun) {
  const Variables daemon = with(rank(1, 1, 0), {{"SLURM_STEP_NODELIST", "n[1-2]"},
                                                {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                                                {"OMPI_COMM_WORLD_SIZE", "8"},
                                                {"OMPI_COMM_WORLD_RANK", "5"}});
  EXPECT_THAT(refused(Code::failed_precondition, in(daemon)),
              NamesAll({"rank 5 of 8", "rank 1 of 2", "MpiClusterResolver"}));
  const Variables batch = with(rank(0, 0, 0), {{"SLURM_JOB_NODELIST", "n[1-2]"},
                                               {"SLURM_TASKS_PER_NODE", "2,1"},
                                               {"PMI_SIZE", "3"},
                                               {"PMI_RANK", "1"}});
  EXPECT_THAT(refused(Code::failed_precondition, in(batch)), HasSubstr("MpiClusterResolver"));
  const Variables pmi = with(kStep, with(rank(3, 1, 0), {{"PMI_SIZE", "5"}, {"PMI_RANK", "3"}}));
  EXPECT_EQ(workers(in(pmi)).size(), 5U);
}

TEST(SlurmResolver, RejectsInconsistentLists) {
  const Variables own = with(kStep, rank(0, 0, 0));
  EXPECT_THAT(refused(Code::failed_precondition, in(with(own, {{"SLURM_STEP_TASKS_PER_NODE", "3,1"}}))),
              NamesAll({"SLURM_STEP_NODELIST=\"n[1-2,10]\"", "3 hosts", "SLURM_STEP_TASKS_PER_NODE=\"3,1\"",
                        "of 2"}));
  EXPECT_THAT(refused(Code::failed_precondition, in(with(own, {{"SLURM_STEP_NUM_TASKS", "6"}}))),
              NamesAll({"worker 6", "5", "SLURM_STEP_TASKS_PER_NODE=3,1(x2)", "--ntasks=6"}));
  EXPECT_THAT(refused(Code::failed_precondition, in(with(own, {{"SLURM_PROCID", "5"}}))),
              NamesAll({"rank 5", "5 tasks"}));
  EXPECT_THAT(refused(Code::invalid_argument, in(with(own, {{"SLURM_STEP_NODELIST", "n[1-"}}))),
              NamesAll({"SLURM_STEP_NODELIST=\"n[1-\"", "character 5"}));
  EXPECT_THAT(refused(Code::invalid_argument, in(with(own, {{"SLURM_STEP_TASKS_PER_NODE", "3(y2)"}}))),
              NamesAll({"SLURM_STEP_TASKS_PER_NODE=\"3(y2)\"", "character 3"}));
  for (const char* const number : {"one", "-1", "1.5", "99999999999", "1 "}) {
    EXPECT_THAT(refused(Code::invalid_argument, in(with(own, {{"SLURM_PROCID", number}}))),
                NamesAll({"SLURM_PROCID=\"" + std::string(number) + "\"", "0"}));
  }
  EXPECT_THAT(refused(Code::failed_precondition, in(with(own, {{"SLURM_PROCID", ""}}))),
              NamesAll({"SLURM_PROCID"}));
  EXPECT_THAT(
      refused(Code::invalid_argument, in(with(own, {{"SLURM_STEP_TASKS_PER_NODE", "999999999(x3)"}}))),
      NamesAll({"4000000"}));
}

TEST(SlurmResolver, ArgumentsOverrideVariables) {
  SlurmOptions hosts = in({});
  hosts.hosts = {{"b", 2}, {"a", 1}};
  hosts.rank = 1;
  hosts.port_base = 65'534;
  hosts.rpc_layer = "";
  EXPECT_EQ(workers(hosts), (Strings{"b:65534", "b:65535", "a:65534"}));
  EXPECT_EQ(SlurmClusterResolver(hosts).master(), "b:65535");

  SlurmOptions per_node = in({{"SLURM_PROCID", "0"}, {"SLURM_JOB_NODELIST", "n[1-2]"}});
  per_node.tasks_per_node = 2;
  EXPECT_EQ(workers(per_node), (Strings{"n1:8888", "n1:8889", "n2:8888", "n2:8889"}));
}

TEST(SlurmResolver, RejectsInvalidArguments) {
  SlurmOptions good = in({});
  good.hosts = {{"a", 2}};
  good.rank = 0;
  const auto refused_with = [&](auto change) {
    SlurmOptions options = good;
    change(options);
    return refused(Code::invalid_argument, options);
  };
  EXPECT_THAT(refused_with([](SlurmOptions& o) { o.port_base = 0; }),
              NamesAll({"port_base", "0", "1", "65534"}));
  EXPECT_THAT(refused_with([](SlurmOptions& o) { o.port_base = 65'535; }),
              NamesAll({"port_base", "65535", "65534", "2 tasks"}));
  EXPECT_THAT(refused_with([](SlurmOptions& o) {
                o.jobs = {{"ps", -1}, {"worker", 3}};
              }),
              NamesAll({"SlurmOptions::jobs", "ps", "-1"}));
  EXPECT_THAT(refused_with([](SlurmOptions& o) { o.hosts = {{"a", 0}}; }), NamesAll({"\"a\"", "0", "1"}));
  EXPECT_THAT(refused_with([](SlurmOptions& o) { o.hosts = {{"", 1}}; }), NamesAll({"\"\"", "name"}));
  EXPECT_THAT(refused_with([](SlurmOptions& o) { o.gpus_per_node = -1; }), NamesAll({"gpus_per_node", "-1"}));
  EXPECT_THAT(refused_with([](SlurmOptions& o) { o.gpus_per_task = -1; }), NamesAll({"gpus_per_task", "-1"}));
  good.rank = 2;
  EXPECT_THAT(refused(Code::failed_precondition, good), NamesAll({"rank 2", "SlurmOptions::hosts"}));
}

/// Rank 1 of two tasks on one host.
SlurmClusterResolver second_of_two(const Variables& variables, int gpus = 0) {
  return SlurmClusterResolver(
      in(with(variables,
              {{"SLURM_PROCID", "1"}, {"SLURM_STEP_NODELIST", "n1"}, {"SLURM_STEP_TASKS_PER_NODE", "2"}}),
         gpus));
}

TEST(SlurmResolver, CountsGpusOfANode) {
  EXPECT_EQ(second_of_two({}, 3).gpus_per_node(), 3);
  EXPECT_EQ(second_of_two({{"CUDA_VISIBLE_DEVICES", "0,1,2,3"}}, 3).gpus_per_node(), 4);
  EXPECT_EQ(second_of_two({{"SLURM_STEP_GPUS", "2-6"}, {"CUDA_VISIBLE_DEVICES", "0,1,2,3"}}).gpus_per_node(),
            5);
  const SlurmClusterResolver six = second_of_two({{"SLURM_GPUS_ON_NODE", "6"}, {"SLURM_STEP_GPUS", "2-6"}});
  EXPECT_EQ(six.gpus_per_node(), 6);
  EXPECT_EQ(six.gpus_per_task(), 3);
  EXPECT_EQ(six.num_accelerators(), (std::map<std::string, int>{{"GPU", 3}}));
  EXPECT_EQ(second_of_two({}, 1).gpus_per_task(), 0);
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [] {
                         second_of_two({{"SLURM_GPUS_ON_NODE", "two"}});
                       }),
              HasSubstr("SLURM_GPUS_ON_NODE=\"two\""));
  EXPECT_THAT(error_of(Code::invalid_argument,
                       [] {
                         second_of_two({{"SLURM_STEP_GPUS", "0-"}});
                       }),
              NamesAll({"SLURM_STEP_GPUS=\"0-\"", "character 3"}));
}

TEST(SlurmResolver, SelectsATasksGpusFromTheVisibleOnes) {
  EXPECT_EQ(second_of_two({}, 4).visible_gpus(), "2,3");
  EXPECT_EQ(second_of_two({}, 0).visible_gpus(), "");
  EXPECT_EQ(second_of_two({{"CUDA_VISIBLE_DEVICES", "4,5,6,7"}}).visible_gpus(), "6,7");
  EXPECT_EQ(second_of_two({{"CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b"}}).visible_gpus(), "GPU-b");
  // Slurm has already bound the task to its GPUs.
  EXPECT_EQ(second_of_two({{"SLURM_GPUS_ON_NODE", "4"}, {"CUDA_VISIBLE_DEVICES", "0,1"}}).visible_gpus(),
            "0,1");
  const SlurmClusterResolver few =
      second_of_two({{"SLURM_GPUS_ON_NODE", "8"}, {"CUDA_VISIBLE_DEVICES", "0,1,2"}});
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { static_cast<void>(few.visible_gpus()); }),
              NamesAll({"4", "7", "8", "CUDA_VISIBLE_DEVICES", "0,1,2", "--gpu-bind=none"}));
}

TEST(SlurmResolver, SetsTheVariableOnRequest) {
  ASSERT_EQ(unsetenv("CUDA_VISIBLE_DEVICES"), 0);  // no other thread reads it
  const SlurmClusterResolver resolver = second_of_two({}, 4);
  EXPECT_EQ(std::getenv("CUDA_VISIBLE_DEVICES"), nullptr);
  resolver.set_visible_gpus();
  EXPECT_STREQ(std::getenv("CUDA_VISIBLE_DEVICES"), "2,3");
  ASSERT_EQ(unsetenv("CUDA_VISIBLE_DEVICES"), 0);
}

}  // namespace
}  // namespace capstan
