// shard_variables_test.cpp -- the shards of a variable as variables, and variables by their names.
#include <gmock/gmock.h>

#include "capstan/array.hpp"
#include "capstan/coordinator.hpp"
#include "capstan/detail/get_variable.hpp"
#include "conformance/cluster_fixture.hpp"

namespace capstan {
namespace {

using testing::HasSubstr;

class ShardVariables : public ClusterFixture {};

std::vector<float> add_to_shard(Variable<float> shard, float amount) {
  shard.assign_add(std::vector<float>(shard.rows(), amount));
  return shard.pull();
}
std::string name_on_worker(std::vector<Variable<float>> shards) { return shards.at(1).name(); }

// A3.2, B148: same.
TEST_P(ShardVariables, EachHasTheRowsOfOneShard) {
  start({.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy().scope();
  const Variable<float> w("w", Array<float>({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  const auto shards = w.variables();
  ASSERT_EQ(shards.size(), 2U);
  EXPECT_EQ(shards[0].name(), "w/part_0");
  EXPECT_EQ(shards[1].name(), "w/part_1");
  EXPECT_EQ(shards[0].read(), Array<float>({3, 2}, {0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(shards[1].read(), Array<float>({2, 2}, {6, 7, 8, 9}));
  EXPECT_EQ(shards[1].rows(), 2U);
  EXPECT_EQ(ps_of_shards(shards[1]), std::vector<int>{1 % ps()});
  EXPECT_EQ(shards[1].lookup({1, 0}).values, (std::vector<float>{8, 9, 6, 7}));
  EXPECT_EQ(shards[1].lookup({1}, ReadMode::consistent).values, (std::vector<float>{8, 9}));
  EXPECT_THAT(error_of(Code::out_of_range, [&] { return shards[1].lookup({2}); }), HasSubstr("w/part_1"));
  EXPECT_EQ(shards[0] + 1, Array<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
}

// A3.2: same.
TEST_P(ShardVariables, ChangeTheVariable) {
  start({.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy().scope();
  for (const Optimizer& optimizer :
       {Optimizer(optimizers::SGD{-1}), Optimizer(optimizers::Momentum{-1, 0})}) {
    const std::string name = optimizer.kind == OptimizerKind::sgd ? "linear" : "momentum";
    const Variable<float> w(name, Shape{5}, {}, {.optimizer = optimizer});
    const auto shards = w.variables();
    shards[0].assign({1, 2, 3});
    shards[1].assign({4}, 1);
    shards[1].scatter_add({0, 0}, {1, 1});
    shards[0].push({2, 2}, {1, 1});
    shards[1].push_dense({10, 10});
    shards[1].flush();
    EXPECT_EQ(w.pull(), (std::vector<float>{1, 2, 5, 12, 14}));
  }
}

// A2.4: better: a variable of another strategy is rejected by name.
TEST_P(ShardVariables, ColocateWithTheirShard) {
  start({.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy().scope();
  const Variable<float> w("w", Shape{4});
  for (const auto& shard : w.variables()) {
    EXPECT_TRUE(strategy().variable_created_in_scope(shard));
    const auto beside = strategy().colocate_vars_with(shard);
    EXPECT_EQ(ps_of_shards(Variable<float>("beside " + shard.name(), Shape{4})), ps_of_shards(shard));
  }
}

// A3.2: same.
TEST_P(ShardVariables, AreArgumentsOfFunctions) {
  start({.variable_partitioner = FixedShardsPartitioner{2}});
  const auto scope = strategy().scope();
  const Variable<float> w("w", {1, 2, 3});
  ClusterCoordinator coordinator(strategy());
  EXPECT_EQ(coordinator.schedule<&add_to_shard>(w.variables()[1], 5).fetch(), std::vector<float>{8});
  EXPECT_EQ(coordinator.schedule<&name_on_worker>(w.variables()).fetch(), "w/part_1");
  EXPECT_EQ(w.pull(), (std::vector<float>{1, 2, 8}));
}

// A3.2: same.
TEST_P(ShardVariables, OnlyShardHasTheNameOfItsVariable) {
  start();
  const auto scope = strategy().scope();
  const Variable<float> w("w", {1, 2});
  ASSERT_EQ(w.variables().size(), 1U);
  EXPECT_EQ(w.variables()[0].name(), "w");
}

// own: better: get_variable of TensorFlow 1 with its `reuse`, for variables of a scope.
TEST_P(ShardVariables, GetVariableCreatesOrReuses) {
  start();
  const auto scope = strategy().scope();
  const auto made = get_variable<float>("v", Shape{2}, {1, 2}, {.trainable = false});
  EXPECT_THAT(error_of(Code::already_exists, [] { get_variable<float>("v", Shape{2}); }), HasSubstr("\"v\""));
  const auto reused = get_variable<float>("v", Shape{2}, {8, 9}, {}, Reuse::automatic);
  EXPECT_EQ(reused.pull(), (std::vector<float>{1, 2}));
  EXPECT_FALSE(reused.trainable());
  reused.assign({3, 4});
  EXPECT_EQ(made.pull(), (std::vector<float>{3, 4}));
  EXPECT_EQ(get_variable<float>("v").pull(), (std::vector<float>{3, 4}));
  EXPECT_EQ(get_variable<float>("w", Shape{1}, {5}, {}, Reuse::automatic).pull(), std::vector<float>{5});
  error_of(Code::not_found, [] { get_variable<float>("x"); });
  error_of(Code::not_found, [] { get_variable<float>("x", Shape{1}, {}, {}, Reuse::always); });
  EXPECT_THAT(error_of(Code::invalid_argument, [] { get_variable<double>("v"); }), HasSubstr("float64"));
  EXPECT_THAT(
      error_of(Code::invalid_argument, [] { get_variable<float>("v", Shape{3}, {}, {}, Reuse::always); }),
      HasSubstr("(3)"));
  EXPECT_FALSE(Variable<float>::find("x"));
}

INSTANTIATE_TEST_SUITE_P(, ShardVariables, testing::Values(1, 2, 3), ps_name);

}  // namespace
}  // namespace capstan
