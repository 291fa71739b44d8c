// successive_strategies_test.cpp -- strategies that exist successively, concurrently, or are rejected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "capstan/capstan.hpp"
#include "cluster/bootstrap/join.hpp"
#include "cluster/runtime.hpp"
#include "support/expect_error.hpp"
#include "support/rank_threads.hpp"

namespace capstan {
namespace {

using testing::HasSubstr;

void add_one_to(const Variable<float>& v) { v.push(std::vector<std::int64_t>{0}, std::vector<float>{1}); }
int twice_of(int x) { return 2 * x; }
Iterator<int> three_numbers() { return iterate(std::vector<int>{1, 2, 3}); }

Settings settings_of_two_workers() {
  Settings settings;
  settings.set_from_flag("heap-slab-bytes", "1MiB");
  settings.set_from_flag("workers", "2");
  settings.set_from_flag("bootstrap", "alone");
  return settings;
}

/// Trains, counts and schedules functions, and expects no state of an earlier strategy.
void train_with(ParameterServerStrategy& strategy) {
  ClusterCoordinator coordinator(strategy);
  const auto scope = strategy.scope();
  const Variable<float> v("v", Shape{1}, {}, {optimizers::SGD{.learning_rate = -1}});
  const Counter counter("steps");
  for (int i = 0; i < 10; ++i) coordinator.schedule<&add_one_to>(v);
  EXPECT_TRUE(coordinator.join(std::chrono::seconds(20)));
  EXPECT_EQ(v.pull()[0], 10);
  EXPECT_EQ(counter.fetch_add(1), 0);
  EXPECT_EQ(counter.value(), 1);
  EXPECT_EQ(coordinator.schedule<&twice_of>(21).fetch(), 42);
  EXPECT_EQ(strategy.variables(), std::vector<std::string>{"v"});
}

TEST(StrategiesInOneProcess, FollowEachOtherInAnEmbeddedCluster) {
  const Cluster cluster = cluster::join(settings_of_two_workers());
  for (int i = 0; i < 3; ++i) {
    ParameterServerStrategy strategy(cluster);
    train_with(strategy);
  }
}

TEST(StrategiesInOneProcess, FollowEachOtherWithAClusterEach) {
  for (int i = 0; i < 3; ++i) {
    const Cluster cluster = cluster::join(settings_of_two_workers());
    ParameterServerStrategy strategy(cluster);
    train_with(strategy);
  }
}

TEST(StrategiesInOneProcess, FollowOneWhoseResultsAndHandlesStillExist) {
  const Cluster cluster = cluster::join(settings_of_two_workers());
  std::vector<RemoteValue<int>> results;
  std::vector<PerWorker<Iterator<int>>> datasets;
  for (int i = 0; i < 3; ++i) {
    ParameterServerStrategy strategy(cluster);
    {
      ClusterCoordinator coordinator(strategy);
      results.push_back(coordinator.schedule<&twice_of>(i));
      coordinator.join();
      datasets.push_back(coordinator.create_per_worker_dataset<&three_numbers>());
    }
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(results[static_cast<std::size_t>(i)].fetch(), 2 * i);
}

TEST(StrategiesInOneProcess, ExistConcurrentlyWithAClusterEach) {
  const Cluster first_cluster = cluster::join(settings_of_two_workers());
  const Cluster second_cluster = cluster::join(settings_of_two_workers());
  ParameterServerStrategy first(first_cluster);
  auto counter_of = [](ParameterServerStrategy& strategy) {
    const auto scope = strategy.scope();
    return Counter("counter");
  };
  const Counter first_counter = counter_of(first);
  {
    ParameterServerStrategy second(second_cluster);
    const Counter second_counter = counter_of(second);
    first_counter.fetch_add(5);
    EXPECT_EQ(second_counter.value(), 0);
    EXPECT_EQ(first_counter.value(), 5);
    train_with(second);
  }
  EXPECT_EQ(get_replicas().num_replicas_in_sync(), first.num_replicas_in_sync());
  train_with(first);
}

TEST(StrategiesInOneProcess, RejectASecondOneOfACluster) {
  const Cluster cluster = cluster::join(settings_of_two_workers());
  ParameterServerStrategy first(cluster);
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { ParameterServerStrategy second(cluster); }),
              HasSubstr("strategy"));
  train_with(first);
}

TEST(StrategiesInOneProcess, RejectOneAfterTheEndOfAJob) {
  const RankThreads ranks({.ranks = 4});
  { ParameterServerStrategy strategy(ranks.cluster()); }
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { ParameterServerStrategy second(ranks.cluster()); }),
              HasSubstr("ended"));
}

TEST(StrategiesInOneProcess, RejectASecondCoordinatorAfterTheEndOfTheFirst) {
  const Cluster cluster = cluster::join(settings_of_two_workers());
  ParameterServerStrategy strategy(cluster);
  { ClusterCoordinator coordinator(strategy); }
  EXPECT_THAT(error_of(Code::failed_precondition, [&] { ClusterCoordinator second(strategy); }),
              HasSubstr("ClusterCoordinator"));
}

TEST(StrategiesInOneProcess, ForgetTheRecordedStepOfTheEarlierOne) {
  const Cluster cluster = cluster::join(settings_of_two_workers());
  {
    ParameterServerStrategy strategy(cluster);
    ClusterCoordinator(strategy).record_step(7);
  }
  EXPECT_EQ(cluster.recorded_step(), 7);
  const ParameterServerStrategy strategy(cluster);
  EXPECT_EQ(cluster.recorded_step(), std::nullopt);
}

}  // namespace
}  // namespace capstan
