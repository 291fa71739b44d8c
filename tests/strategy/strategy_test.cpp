// strategy_test.cpp -- scopes, locations of shards, rejected variables, counters, the end of a job.
//
// Tests: src/strategy/control_driver.cpp
// Tests: src/strategy/job_lifetime.cpp
// Tests: src/strategy/parameter_server_strategy.cpp
// Tests: src/strategy/ps_calls.cpp
// Tests: src/strategy/shard_creator.cpp
// Tests: src/strategy/variable_creator.cpp
#include "strategy/strategy.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <optional>
#include <thread>

#include "capstan/variable.hpp"
#include "strategy/disk_timeout.hpp"
#include "support/expect_error.hpp"
#include "support/names_all.hpp"
#include "support/poll.hpp"
#include "support/rank_threads.hpp"
#include "transport/fabric.hpp"
#include "transport/loop/loop.hpp"
#include "transport/message_types.hpp"

namespace capstan {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class StrategyTest : public testing::Test {
 protected:
  /// Returns the ps of each shard of a variable, e.g. "0 1".
  static std::string locations(ParameterServerStrategy& strategy, const std::string& name) {
    std::string out;
    for (const auto& variable : strategy.implementation().variables().all()) {
      if (variable->descriptor.name != name) continue;
      for (const auto& location : variable->descriptor.shards) {
        if (!out.empty()) out += ' ';
        out += std::to_string(location.ps);
      }
    }
    return out;
  }
  static RankThreadsOptions with_ps(int ps) {
    return {.ranks = 2 + ps, .flags = {{"ps", std::to_string(ps)}}};
  }
};

TEST_F(StrategyTest, DistributesVariablesRoundRobin) {
  RankThreads ranks(with_ps(3));
  ParameterServerStrategy strategy(ranks.cluster());
  const auto scope = strategy.scope();
  for (const char* name : {"v2", "v3", "v4", "v5"}) Variable<float>(name, Shape{4, 2});
  EXPECT_EQ(locations(strategy, "v2"), "0");
  EXPECT_EQ(locations(strategy, "v3"), "1");
  EXPECT_EQ(locations(strategy, "v4"), "2");
  EXPECT_EQ(locations(strategy, "v5"), "0");
}

TEST_F(StrategyTest, ContinuesRoundRobinAcrossVariables) {
  RankThreads ranks(with_ps(3));
  ParameterServerStrategy strategy(ranks.cluster(), {.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy.scope();
  const Variable<float> a("a", Shape{5, 2});
  const Variable<float> b("b", Shape{6, 1});
  const Variable<float> c("c", Shape{1});
  const Variable<float> d("d", Shape{2});
  EXPECT_EQ(locations(strategy, "a"), "0 1");
  EXPECT_EQ(locations(strategy, "b"), "2 0");
  EXPECT_EQ(locations(strategy, "c"), "1");
  EXPECT_EQ(locations(strategy, "d"), "2 0");
  EXPECT_EQ(a.shards().size(), 2U);
  EXPECT_EQ(c.shards().size(), 1U);
  const auto& shards = strategy.implementation().variables().all()[0]->descriptor.shards;
  EXPECT_EQ(shards[0].rows, 3U);
  EXPECT_EQ(shards[1].rows, 2U);
  EXPECT_EQ(shards[1].first_row, 3U);
}

TEST_F(StrategyTest, CreatesAtMostOneShardPerRow) {
  RankThreads ranks(with_ps(5));
  ParameterServerStrategy strategy(ranks.cluster(), {.variable_partitioner = [](auto, DType) { return 5; }});
  const auto scope = strategy.scope();
  const Variable<double> v("few", Shape{3, 2}, initializers::constant(4),
                           {optimizers::SGD{.learning_rate = 1}});
  EXPECT_EQ(v.shards().size(), 3U);
  v.push_dense(std::vector<double>{0, 1, 2, 3, 4, 5});
  v.flush();
  EXPECT_EQ(v.pull(), (std::vector<double>{4, 3, 2, 1, 0, -1}));
}

TEST_F(StrategyTest, PassesShapeAndDtypeToThePartitioner) {
  RankThreads ranks(with_ps(1));
  std::vector<std::int64_t> shape;
  DType dtype{};
  ParameterServerStrategy strategy(ranks.cluster(),
                                   {.variable_partitioner = [&](std::span<const std::int64_t> s, DType d) {
                                     shape.assign(s.begin(), s.end());
                                     dtype = d;
                                     return 2;
                                   }});
  const auto scope = strategy.scope();
  const Variable<std::int64_t> v("v", Shape{7, 4}, {}, {optimizers::SGD{.learning_rate = 1}});
  EXPECT_EQ(shape, (std::vector<std::int64_t>{7, 4}));
  EXPECT_EQ(dtype, DType::int64);
}

TEST_F(StrategyTest, PlacesVariablesOutsideScopesOnTheCoordinator) {
  RankThreads ranks(with_ps(1));
  ParameterServerStrategy strategy(ranks.cluster());
  const auto create = [](const char* name) { return [name] { Variable<float> v(name, Shape{1}); }; };
  const Variable<float> before("v", Shape{2}, initializers::constant(3));
  EXPECT_TRUE(before.on_coordinator());
  EXPECT_FALSE(strategy.variable_created_in_scope(before));
  {
    const auto outer = strategy.scope();
    EXPECT_NO_THROW(create("a")());
    {
      const auto inner = strategy.scope();
      EXPECT_NO_THROW(create("b")());
    }
    EXPECT_NO_THROW(create("c")());
  }
  const Variable<float> after("v", Shape{2});  // a second variable with this name
  after.push(std::vector<std::int64_t>{1}, std::vector<float>{-100});
  after.flush();
  EXPECT_EQ(after.pull(), (std::vector<float>{0, 1}));
  EXPECT_EQ(before.pull(), (std::vector<float>{3, 3}));
  EXPECT_EQ(strategy.variables(), (std::vector<std::string>{"a", "b", "c"}));
  expect_error(
      Code::failed_precondition,
      "variable \"v\" was created outside of a strategy's scope and lives on the coordinator alone; create "
      "it in the scope to use it in scheduled functions",
      [&] { (void)to_bytes(after); });
  expect_error(
      Code::failed_precondition,
      "counter \"n\" is created outside of a strategy's scope: open one on the coordinator, auto scope "
      "= strategy.scope()",
      [] { Counter n("n"); });
}

TEST_F(StrategyTest, ScopesAreLocalToTheThread) {
  RankThreads ranks(with_ps(1));
  ParameterServerStrategy strategy(ranks.cluster());
  const auto scope = strategy.scope();
  std::jthread([] { EXPECT_TRUE(Variable<float>("v", Shape{1}).on_coordinator()); }).join();
  EXPECT_FALSE(Variable<float>("v", Shape{1}).on_coordinator());
}

TEST_F(StrategyTest, RejectsNestedScopesOfDifferentStrategies) {
  RankThreads first(with_ps(1));
  RankThreads second(with_ps(1));
  ParameterServerStrategy one(first.cluster());
  ParameterServerStrategy other(second.cluster());
  {
    const auto scope = one.scope();
    expect_error(Code::failed_precondition,
                 "mixing strategies: the scope of one cannot be opened inside the scope of another",
                 [&] { const auto wrong = other.scope(); });
    EXPECT_NO_THROW(Variable<float>("still here", Shape{1}));
  }
  EXPECT_EQ(locations(one, "still here"), "0");
  const auto scope = other.scope();
  EXPECT_NO_THROW(Variable<float>("there", Shape{1}));
}

TEST_F(StrategyTest, RejectsConstructionOutsideTheCoordinator) {
  transport::LoopHub hub;
  Settings settings;
  const auto runtimes = cluster::Runtime::as_threads(settings, 3, hub);
  for (const std::size_t rank : {1, 2}) {
    expect_error(Code::failed_precondition,
                 "a strategy is made on the coordinator; this is " + runtimes[rank]->self().name() +
                     ", which runs Server(cluster).join()",
                 [&] { ParameterServerStrategy strategy{Cluster(runtimes[rank])}; });
  }
}

TEST_F(StrategyTest, RejectsInvalidVariablesAndContinues) {
  RankThreads ranks(with_ps(2));
  std::int64_t shards = 2;
  ParameterServerStrategy strategy(ranks.cluster(),
                                   {.variable_partitioner = [&](auto, DType) { return shards; }});
  const auto scope = strategy.scope();
  const auto shape = [](const Shape& sizes) { return [sizes] { Variable<float> v("v", sizes); }; };
  const auto shape_text = [](const std::string& text) {
    return "variable \"v\" has shape (" + text + "); expected sizes of 0 or more";
  };
  expect_error(Code::invalid_argument, shape_text("3, -1"), shape({3, -1}));
  expect_error(Code::invalid_argument, shape_text("-2, 2, 0"), shape({-2, 2, 0}));
  for (const std::int64_t wrong : {0, -3}) {
    shards = wrong;
    expect_error(
        Code::invalid_argument,
        "variable_partitioner returned [" + std::to_string(wrong) +
            "] for variable \"v\" of shape (4); expected a number of shards for each axis, 1 or more for "
            "the first and 1 for the others",
        shape({4}));
  }
  shards = 2;
  EXPECT_THAT(
      error_of(Code::invalid_argument,
               [] { Variable<std::int64_t>("n", Shape{4}, {}, {optimizers::SGD{.learning_rate = 0.5}}); }),
      NamesAll({"variable \"n\"", "int64", "sgd(learning_rate=0.5)"}));
  const Variable<std::int64_t> n("n", Shape{4}, {}, {optimizers::SGD{.learning_rate = -1}});
  const Variable<std::int64_t> by_one("integers count by 1", Shape{4});
  by_one.push_dense(std::vector<std::int64_t>{1, 2, 3, 4});
  by_one.flush();
  EXPECT_EQ(by_one.pull(), (std::vector<std::int64_t>{-1, -2, -3, -4}));
  const Variable<float> v("v", Shape{4}, initializers::constant(2));
  EXPECT_THAT(error_of(Code::already_exists, shape({4})), HasSubstr("\"v\""));
  n.push_dense(std::vector<std::int64_t>{1, 2, 3, 4});
  n.flush();
  EXPECT_EQ(n.pull(), (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(v.pull(), std::vector<float>(4, 2));
}

TEST_F(StrategyTest, RejectsVariablesWithOverflowingSizes) {
  RankThreads ranks(with_ps(1));
  ParameterServerStrategy strategy(ranks.cluster());
  const auto scope = strategy.scope();
  constexpr std::int64_t kHuge = std::int64_t{1} << 61;
  for (const Shape& shape : {Shape{kHuge}, Shape{kHuge + 512}, Shape{2, kHuge}}) {
    const std::string text = error_of(Code::invalid_argument, [&] { Variable<double>("large", shape); });
    EXPECT_THAT(text, HasSubstr("\"large\""));
    EXPECT_THAT(text, HasSubstr(std::to_string(kHuge).substr(0, 12)));
  }
  const Shape rows{(std::int64_t{1} << 32) + 16};
  const std::string text = error_of(Code::invalid_argument, [&] { Variable<bool>("large", rows); });
  for (const std::string& part : {std::string("\"large\""), std::to_string(rows[0]),
                                  std::to_string(protocol::kMaxShardRows), std::string("2 shards")})
    EXPECT_THAT(text, HasSubstr(part));
  const Variable<bool> free("large", Shape{3});
  EXPECT_EQ(free.pull(), std::vector<std::uint8_t>(3));
  EXPECT_EQ(strategy.implementation().variables().all()[0]->descriptor.id, 1U)
      << "a rejected variable was sent to a ps";
}

TEST_F(StrategyTest, RejectsParametersOutOfRangeBeforeContactingAnyPs) {
  RankThreads ranks(with_ps(1));
  ParameterServerStrategy strategy(ranks.cluster());
  const auto scope = strategy.scope();
  const auto create = [](const Optimizer& optimizer, const Initializer& initializer) {
    return [=] { Variable<float> v("v", Shape{4}, initializer, {optimizer}); };
  };
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& rejected :
       {create(optimizers::SGD{.learning_rate = kNan}, {}), create(optimizers::RMSProp{.rho = 2}, {}),
        create({}, initializers::truncated_normal(0, kNan))}) {
    const std::string text = error_of(Code::invalid_argument, rejected);
    EXPECT_THAT(text, HasSubstr("\"v\""));
  }
  EXPECT_EQ(strategy.loads()[0].shards, 0U);
  const Variable<float> v("v", Shape{4});
  EXPECT_EQ(strategy.implementation().variables().all()[0]->descriptor.id, 1U)
      << "a rejected variable was sent to a ps";
}

TEST_F(StrategyTest, DistributesCountersRoundRobin) {
  RankThreads ranks(with_ps(2));
  ParameterServerStrategy strategy(ranks.cluster());
  const auto scope = strategy.scope();
  std::vector<Counter> counters;
  for (int i = 0; i < 128; ++i) counters.emplace_back(fmt::format("c{}", i));
  EXPECT_THAT(error_of(Code::already_exists, [] { Counter c("c5"); }), HasSubstr("\"c5\""));
  EXPECT_THAT(error_of(Code::resource_exhausted, [] { Counter c("one more"); }),
              AllOf(HasSubstr("one more"), HasSubstr("128")));
  for (int i = 0; i < 128; ++i) EXPECT_EQ(counters[static_cast<std::size_t>(i)].fetch_add(i), 0);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(counters[static_cast<std::size_t>(i)].fetch_add(-2 * i), i);
  for (int i = 0; i < 128; ++i) EXPECT_EQ(counters[static_cast<std::size_t>(i)].value(), -i);
}

TEST_F(StrategyTest, UnregistersHandlersAtItsEnd) {
  std::atomic<bool> sent{false};
  auto options = with_ps(1);
  options.ps = [&sent](const std::shared_ptr<cluster::Runtime>& runtime) {
    const int code = serve(runtime);  // until the strategy has ended
    runtime->control_peer(runtime->member(Role::coordinator, 0)).send(transport::kShardsSaved, {});
    sent = true;
    return code;
  };
  RankThreads ranks(options);
  { const ParameterServerStrategy strategy(ranks.cluster()); }
  ASSERT_TRUE(poll([&sent] { return sent ? std::optional(true) : std::nullopt; }));
  const std::uint64_t malformed = transport::malformed_messages();
  while (ranks.runtime().control().progress() != 0) {
  }
  EXPECT_EQ(transport::malformed_messages(), malformed);  // a handler would have read the empty header
}

TEST_F(StrategyTest, WorksInAnEmbeddedCluster) {
  Settings settings;
  settings.set_from_flag("ps", "2");
  const Cluster cluster(cluster::Runtime::embedded_cluster(settings));
  ParameterServerStrategy strategy(cluster, {.variable_partitioner = FixedShardsPartitioner{3}});
  const auto scope = strategy.scope();
  const Variable<float> v("v", Shape{8, 2}, initializers::constant(1),
                          {optimizers::SGD{.learning_rate = -1}});
  EXPECT_EQ(locations(strategy, "v"), "0 1 0");
  v.push(std::vector<std::int64_t>{7, 0, 7}, std::vector<float>{1, 2, 3, 4, 5, 6});
  v.flush();
  EXPECT_EQ(v.lookup(std::vector<std::int64_t>{0, 7, 3}).values, (std::vector<float>{4, 5, 7, 9, 1, 1}));
  const Counter c("c");
  c.fetch_add(3);
  EXPECT_EQ(c.value(), 3);
}

TEST_F(StrategyTest, StorageTimeoutGrowsWithBytesAndLowBandwidth) {
  const auto timeout_of = [](const std::string& bandwidth, std::uint64_t bytes) {
    RankThreads ranks({.ranks = 3, .flags = {{"wait-timeout", "2s"}, {"checkpoint-bandwidth", bandwidth}}});
    ParameterServerStrategy strategy(ranks.cluster());
    return strategy::disk_timeout(strategy.implementation(), bytes);
  };
  using std::chrono::seconds;
  EXPECT_EQ(timeout_of("0", 0), seconds(20));
  EXPECT_EQ(timeout_of("0", 100'000'000), seconds(20 + 10));
  EXPECT_EQ(timeout_of("1MB", 100'000'000), seconds(20 + 100));
}

}  // namespace
}  // namespace capstan
