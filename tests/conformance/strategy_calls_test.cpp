// strategy_calls_test.cpp -- the strategy in use, its resolver, and calls of single generations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "capstan/capstan.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using ::testing::ElementsAre;

/// Two ps and two workers of two replicas, whose ranks are threads.
class StrategyCalls : public testing::Test {
 protected:
  StrategyCalls() { strategy_.allow_run_without_coordinator(); }

  RankThreads ranks_{{.ranks = 5, .flags = {{"ps", "2"}, {"replicas", "2"}}}};
  ParameterServerStrategy strategy_{ranks_.cluster()};
  ClusterCoordinator coordinator_{strategy_};
};

/// Returns whether the worker's strategy is current in the function, in its replicas, and in merge_call.
std::vector<bool> in_use_on_a_worker() {
  std::vector<bool> seen{has_strategy(), get_strategy() == get_replicas()};
  const Replicas outside = get_strategy();
  const auto in_replicas = outside.run([&](ReplicaContext& replica) {
    return has_strategy() && get_strategy() == outside &&
           replica.merge_call([&](Replicas&) { return has_strategy() && get_strategy() == outside; });
  });
  for (const bool one : in_replicas.values) seen.push_back(one);
  return seen;
}

// S47, S48: same.
TEST_F(StrategyCalls, GetStrategyReturnsTheStrategyOfTheScopeReplicaOrFunction) {
  EXPECT_FALSE(has_strategy());
  EXPECT_FALSE(get_strategy() == strategy_);
  {
    const auto scope = strategy_.scope();
    EXPECT_TRUE(has_strategy());
    EXPECT_TRUE(get_strategy() == strategy_);
    EXPECT_EQ(get_strategy().num_replicas_in_sync(), 2);
    std::thread([&] { EXPECT_FALSE(has_strategy()); }).join();  // scopes are thread-local
  }
  EXPECT_FALSE(has_strategy());
  std::atomic<int> of_strategy = 0;
  strategy_.run([&] { of_strategy += has_strategy() && get_strategy() == strategy_ ? 1 : 0; });
  EXPECT_EQ(of_strategy, 2);
  EXPECT_FALSE(has_strategy());
  EXPECT_THAT(coordinator_.schedule<&in_use_on_a_worker>().fetch(), ElementsAre(true, true, true, true));
}

// S48: same.
TEST_F(StrategyCalls, DefaultStrategyRunsOnTheCallingThread) {
  const Replicas strategy = get_strategy();
  EXPECT_EQ(strategy.num_replicas_in_sync(), 1);
  EXPECT_TRUE(strategy == get_strategy());
  const auto caller = std::this_thread::get_id();
  EXPECT_EQ(strategy.run([&](int i) { return std::this_thread::get_id() == caller ? 2 * i : 0; }, 4), 8);
  EXPECT_EQ(strategy.reduce(ReduceOp::SUM, PerReplica<int>{{5}}), 5);
  EXPECT_FALSE(has_strategy());
  // Its run makes variables outside of scopes safe for several replicas.
  const Variable<float> v("v outside, after the default strategy", Shape{1});
  strategy.run([&] { v.assign(std::vector<float>{1}); });
  strategy_.run([&] {
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(v.pull()[0], 1);
  });
}

// S53: same.
TEST_F(StrategyCalls, ExperimentalRunTakesTheNextElementOfAnIterator) {
  auto iterator = strategy_.make_dataset_iterator(Dataset<std::int64_t>::range(1, 5));
  const auto doubled = [](std::int64_t number) { return 2 * number; };
  EXPECT_THAT(strategy_.local_results(strategy_.experimental_run(doubled, iterator)), ElementsAre(2, 4));
  EXPECT_THAT(strategy_.local_results(strategy_.experimental_run(doubled, iterator)), ElementsAre(6, 8));
  error_of(Code::out_of_range, [&] { strategy_.experimental_run(doubled, iterator); });
  EXPECT_THAT(strategy_.local_results(strategy_.experimental_run([] { return 7; })), ElementsAre(7, 7));
}

// S113: same.
TEST_F(StrategyCalls, RunTakesOptions) {
  const RunOptions options{.experimental_enable_dynamic_batch_size = false};
  const PerReplica<int> values{{1, 2}};
  const auto plus = [](ReplicaContext& replica, int value) {
    return value + 10 * replica.num_replicas_in_sync();
  };
  EXPECT_THAT(strategy_.run(options, plus, values).values, ElementsAre(21, 22));
  EXPECT_THAT(strategy_.run({}, plus, values).values, ElementsAre(21, 22));
  int calls = 0;
  get_strategy().run(RunOptions{}, [&] { ++calls; });
  EXPECT_EQ(calls, 1);
}

std::vector<double> reduce_two(int worker) {
  const auto replicas = get_replicas();
  const std::vector<std::pair<PerReplica<double>, int>> values{{{{1, 2}}, worker}, {{{10, 20}}, worker}};
  return replicas.batch_reduce_to(ReduceOp::SUM, values);
}

// S111: same.
TEST_F(StrategyCalls, BatchReduceToReducesEachValue) {
  EXPECT_THAT(coordinator_.schedule_on<&reduce_two>(1, 1).fetch(), ElementsAre(3, 30));
  error_of(Code::invalid_argument, [&] { coordinator_.schedule_on<&reduce_two>(1, 0).fetch(); });
}

// S1, S99: better: a cluster that was joined without a resolver is also described, by the hosts of its ranks.
TEST_F(StrategyCalls, ResolverDescribesTheCluster) {
  const auto resolver = strategy_.cluster_resolver();
  EXPECT_EQ(resolver->task_type(), "chief");
  EXPECT_EQ(resolver->task_id(), 0);
  EXPECT_EQ(resolver->cluster_spec().task_count("ps"), 2);
  EXPECT_EQ(resolver->cluster_spec().task_count("worker"), 2);
}

}  // namespace
}  // namespace capstan
