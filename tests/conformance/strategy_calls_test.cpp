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

/// Two ps and two workers of two replicas, whose ranks are threads.
class StrategyCalls : public testing::Test {
 protected:
  StrategyCalls() { strategy_.allow_run_without_coordinator(); }

  RankThreads ranks_{{.ranks = 5, .flags = {{"ps", "2"}, {"replicas", "2"}}}};
  ParameterServerStrategy strategy_{ranks_.cluster()};
  ClusterCoordinator coordinator_{strategy_};
};

// S1, S99: better: a cluster that was joined without a resolver is described as well, by the hosts of its
// ranks.
TEST_F(StrategyCalls, TheResolverDescribesTheCluster) {
  const auto resolver = strategy_.cluster_resolver();
  EXPECT_EQ(resolver->task_type(), "chief");
  EXPECT_EQ(resolver->task_id(), 0);
  EXPECT_EQ(resolver->cluster_spec().task_count("ps"), 2);
  EXPECT_EQ(resolver->cluster_spec().task_count("worker"), 2);
}

}  // namespace
}  // namespace capstan
